"""What people write in tickets: texts of many lengths, some not Latin, some that look like
formulas; the same in every run."""

import random

LEADS = ("mira", "noor", "otto")  # of every team: each exports all tickets

_SENTENCES = (
    "The printer on the third floor is on fire again.",
    "I cannot log in since this morning; the page says “wrong password”, but it is right.",
    "Could you send the invoice of last month, with the order number, to our accounting?",
    "It worked yesterday.",
    "Steps:\n1. open the list\n2. sort by due date\n3. the second page is empty",
    "Our VPN drops every ten minutes, at home and in the office, with and without a cable.",
    'The message reads: "Connection refused (111)", and then nothing happens.',
    "We have 40 people waiting for this, so please treat it as urgent.",
    "Thank you for the quick answer, that solved the first half of it.",
    "The parcel arrived on Monday, but two of the five items were missing and one was broken.",
    "Best regards,\nRita Roe\nHead of Logistics",
    "Is there a way to change the delivery address after the order was placed?",
    "The export stops at 6,000 rows, which is not what the page promised us.",
    "Attached is a picture of the screen, taken a minute after the restart 🙂",
    "The battery lasts less than an hour; the device is eight months old and under warranty.",
    "Two-factor codes arrive late, sometimes after they have expired.",
)
_ELSEWHERE = (
    "Der Rechner fährt nach dem Update nicht mehr hoch; zu sehen ist nur „Bitte warten“.",
    "Le colis n’est pas arrivé à l’adresse indiquée, merci de vérifier auprès du transporteur.",
    "Принтер не печатает после обновления, помогите, пожалуйста.",
    "发票上的公司名称有误，请重新开具并寄到原地址。",
    "ログインできません。パスワードを再設定しても同じです。",
    "لا أستطيع تسجيل الدخول منذ صباح اليوم.",
)
_SUBJECTS = (
    "Printer on fire",
    "Cannot log in",
    "Invoice of last month, once more",
    "VPN drops every ten minutes",
    "Order 4711: two items missing",
    "Question about the warranty",
    "Delivery address is wrong",
    "“Connection refused” when saving",
    "Счёт за прошлый месяц",
    "发票抬头错误",
    "Rückfrage zur Lieferung",
    "Screen stays black",
    # Spreadsheets would run these.
    '=HYPERLINK("http://example.org","click")',
    "+49 30 123456 called back",
    "-- no subject --",
    "＝SUM(A1:A9)",
)
_TAGS = ("printer", "vpn", "invoice", "login", "warranty", "hardware", "-later", "доставка", "退款")
_FIRST = ("Ann", "Bob", "Chiara", "Dmitri", "Eva", "Farid", "Greta", "李", "Ольга", "José", "@Home")
_LAST = ("Ames", "Berg", "Костов", "Dubois", "Östlund", "娜", "García", "Smith-Jones", "O’Neill")


class Pools:
    """Lists of cells that tickets draw from."""

    def __init__(self, seed: int = 7):
        self._dice = random.Random(seed)  # noqa: S311
        self.subjects = [self._subject() for _ in range(512)]
        self.descriptions = [self._description() for _ in range(4_096)]
        self.requesters = [f"{self._one(_FIRST)} {self._one(_LAST)}" for _ in range(1_024)]
        self.tags = [
            "|".join(self._dice.sample(_TAGS, self._one((0, 1, 1, 2, 4)))) for _ in range(256)
        ]
        # Every tenth has no name but the one to log in with.
        self.agents = [
            (self._one(_FIRST), self._one(_LAST)) if number % 10 else ("", "")
            for number in range(60)
        ]

    def _subject(self) -> str:
        # One in forty is a formula.
        plain = self._dice.random() < 0.975
        return self._one(_SUBJECTS[:-4] if plain else _SUBJECTS[-4:])

    def _description(self) -> str:
        """Mostly a line or a paragraph; one in two hundred is a long protocol."""
        kind = self._dice.random()
        few, many = (1, 3) if kind < 0.7 else (4, 6) if kind < 0.95 else (8, 20)
        if kind > 0.995:
            few, many = 60, 200
        words = _ELSEWHERE if self._dice.random() < 0.15 else _SENTENCES
        return " ".join(self._one(words) for _ in range(self._dice.randint(few, many)))

    def _one(self, choices):
        return self._dice.choice(choices)
