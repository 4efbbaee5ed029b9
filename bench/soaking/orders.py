"""Work of the soak's own kinds, ordered in transactions with a business row; and its check."""

import itertools
import random
import threading
from dataclasses import dataclass

from django.db import DatabaseError, InterfaceError, connection, transaction

from tasks.models import BackgroundTask, DedupConflict, TaskStatus

KEPT = 40  # tasks that are still cancelled and retried


@dataclass
class Order:
    """A task as whoever ordered it knows it: which run, and what must become of it."""

    token: str
    pk: int
    run: int = 0
    fails: bool = False  # in run 0
    is_cancelled: bool = False  # in this run
    is_doubtful: bool = False  # a later verb's answer was lost


class OrderLoad:
    """Calls the verbs themselves, as a business transaction would."""

    def __init__(self, seed: str, pause: float):
        self.random = random.Random(seed)
        self.seed = seed
        self.pause = pause
        self.numbers = itertools.count()
        self.orders: list[Order] = []
        self.doubtful_tokens: list[str] = []  # of transactions whose answer was lost
        self.accepted = 0

    @property
    def unknown(self) -> int:
        return len(self.doubtful_tokens) + sum(order.is_doubtful for order in self.orders)

    def run(self, closing: threading.Event) -> None:
        while not closing.wait(self.random.uniform(0.5, 1.5) * self.pause):
            known = [order for order in self.orders[-KEPT:] if not order.is_doubtful]
            choice = self.random.random()
            if not known or choice < 0.55:
                self._order(self.random.randint(1, 12) if choice < 0.3 else 1)
            elif choice < 0.8:
                self._cancel(self.random.choice(known))
            else:
                self._retry(self.random.choice(known))
        connection.close()

    def _order(self, size: int) -> None:
        tokens = [f"{self.seed}-{next(self.numbers)}" for _ in range(size)]
        fast = self.random.random() < 0.5
        chosen = [(token, self.random.random()) for token in tokens]
        try:
            with transaction.atomic():
                orders = [self._insert(token, choice, fast) for token, choice in chosen]
        except (DatabaseError, InterfaceError):
            self._lost_answer()
            self.doubtful_tokens += tokens
            return
        self.accepted += size
        self.orders += orders

    def _insert(self, token: str, choice: float, fast: bool) -> Order:
        kind, payload = "SOAK", {}
        if choice < 0.08:
            kind, payload = "SOAK_SLOW", {"seconds": self.random.choice([0.5, 3, 9])}
        elif choice < 0.15:
            payload = {"fails": True}
        # The same request again, while the first is under way, is the first.
        key = f"soak:{self.random.randrange(3)}" if 0.15 < choice < 0.25 else None
        task = BackgroundTask.objects.enqueue(
            kind, payload=payload, dedup_key=key, fast_path_wanted=fast
        )
        with connection.cursor() as cursor:
            cursor.execute(
                "INSERT INTO soak_orders (token, task) VALUES (%s, %s)", [token, task.pk]
            )
        doubtful = any(each.is_doubtful for each in self._orders_of(task.pk))
        return Order(token, task.pk, task.run, "fails" in payload, is_doubtful=doubtful)

    def _orders_of(self, pk: int) -> list[Order]:
        """With a dedup key several orders may be one task."""
        return [each for each in self.orders if each.pk == pk]

    def _cancel(self, order: Order) -> None:
        self._act(order, lambda task: task.cancel(reason="ordered by the soak"), is_cancelled=True)

    def _retry(self, order: Order) -> None:
        self._act(order, lambda task: task.retry(), is_cancelled=False, run=order.run + 1)

    def _act(self, order: Order, verb, **changes) -> None:
        try:
            did_it = verb(BackgroundTask.objects.get(pk=order.pk))
        except DedupConflict:
            return
        except (DatabaseError, InterfaceError):
            self._lost_answer()
            did_it, changes = True, {"is_doubtful": True}
        if did_it:
            self.accepted += 1
            for each in self._orders_of(order.pk):
                for name, value in changes.items():
                    setattr(each, name, value)

    def _lost_answer(self) -> None:
        connection.close()

    # The check

    def breaches(self) -> list[str]:
        rows, counts = _orders(), _effects()
        found = [
            f"doubled: task {task} run {run} had {count} effects"
            for (task, run), count in counts.items()
            if count > 1
        ]
        accepted = {order.token: order.pk for order in self.orders}
        for token, pk in accepted.items():
            if rows.get(token) != pk:
                found.append(f"lost: the order {token} of task {pk} was accepted and is not there")
        for token in rows.keys() - accepted.keys() - set(self.doubtful_tokens):
            found.append(f"nobody ordered {token}")
        tasks = BackgroundTask.objects.in_bulk(set(rows.values()))
        for token, pk in rows.items():
            if pk not in tasks:
                found.append(f"lost: the order {token} is there without its task {pk}")
        for task in tasks.values():
            found += [f"task {task.job_id}: {text}" for text in _judge_effects(task, counts)]
        for order in self.orders:
            if order.pk in tasks and not order.is_doubtful:
                found += [f"task {order.pk}: {text}" for text in _judge(order, tasks[order.pk])]
        return found


def _orders() -> dict[str, int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT token, task FROM soak_orders")
        return dict(cursor.fetchall())


def _effects() -> dict[tuple[int, int], int]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT task, run, count(*) FROM soak_effects GROUP BY task, run")
        return {(task, run): count for task, run, count in cursor.fetchall()}


def _judge_effects(task: BackgroundTask, counts: dict[tuple[int, int], int]):
    """One row for a run that completed, none for one that did not."""
    for run in range(task.run + 1):
        count = counts.get((task.pk, run), 0)
        is_done = run == task.run and task.status == TaskStatus.COMPLETED
        if is_done and not count:
            yield "lost: completed without its effect"
        if not is_done and count:
            yield f"run {run} left an effect, but did not complete"


def _judge(order: Order, task: BackgroundTask):
    wanted = TaskStatus.FAILED if order.fails and order.run == 0 else TaskStatus.COMPLETED
    if order.is_cancelled:
        wanted = TaskStatus.CANCELLED
    if (task.run, task.status) != (order.run, wanted):
        yield f"it is {task.status} in run {task.run}, not {wanted} in run {order.run}"
