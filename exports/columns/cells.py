"""The SQL that makes cells.

Cells are made by PostgreSQL, so that a row passes through Python as the bytes that COPY sent.
"""

from django.db.models import Case, CharField, Expression, F, Func, TextField, Value, When
from django.db.models.functions import Coalesce, Concat, NullIf, Trim

# A cell that starts with one of these may be run as a formula by a spreadsheet: the four signs,
# their full-width forms, and the controls that spreadsheets drop before they look (OWASP, "CSV
# Injection"). Some drop leading blanks too, also those without a width: the check looks past them.
FORMULA_STARTS = "=+-@＝＋－＠\t\r\n"
BLANKS = " \u00a0\u200b\u2060\u3000\ufeff"


class Guarded(Func):
    """Text that no spreadsheet takes for a formula: an apostrophe is put before a dangerous start.

    ``ascii()`` is the code point of the first character. Comparing integers costs next to nothing
    where a regular expression converts all of a text; nearly every cell ends at the first WHEN.
    """

    arity = 1
    output_field = TextField()
    _codes = ", ".join(str(ord(character)) for character in FORMULA_STARTS)
    _blanks = ", ".join(str(ord(character)) for character in BLANKS)

    def as_sql(self, compiler, connection, **context):
        source = self.source_expressions[0]
        text, parameters = compiler.compile(source)
        if isinstance(source, Case):
            # Long, and it would stand there five times.
            checked = self._checked("once.text")
            return f"(SELECT {checked} FROM (SELECT {text} AS text OFFSET 0) once)", parameters
        return self._checked(text), [*parameters] * 5

    def _checked(self, text: str) -> str:
        return (
            f"CASE WHEN ascii({text}) NOT IN ({self._codes}, {self._blanks}) THEN {text}"
            f" WHEN ascii(ltrim({text}, '{BLANKS}')) IN ({self._codes})"
            f" THEN '''' || {text} ELSE {text} END"
        )


class LocalTime(Func):
    """``2026-03-29 03:00:00``: a moment as the clocks of the snapshot's zone show it, by that day's
    rules.

    COPY writes it so under the date style that a snapshot sets. to_char() would take twice as long,
    and so would AT TIME ZONE and date_trunc(), which read a name anew for each value.
    """

    template = "date_bin('1 second', (%(expressions)s)::timestamp, timestamp '2000-01-01')"
    arity = 1
    output_field = CharField()


class Offset(Func):
    """``UTC+02:00``: by how much the clocks of ``zone`` differed from UTC at that moment.

    The letters keep spreadsheets from taking the sign for a formula's. Seconds are shown where
    there are any: Liberia's clocks had them until 1972.
    """

    output_field = CharField()

    def __init__(self, moment: Expression, zone: str):
        super().__init__(moment, Value(zone))

    def as_sql(self, compiler, connection, **context):
        moment, of_moment = compiler.compile(self.source_expressions[0])
        zone, of_zone = compiler.compile(self.source_expressions[1])
        # to_char() would put the sign before each part of a negative interval.
        sql = (
            "(SELECT CASE WHEN apart < interval '0' THEN 'UTC-' ELSE 'UTC+' END"
            " || regexp_replace(to_char(greatest(apart, -apart), 'HH24:MI:SS'), ':00$', '')"
            f" FROM (SELECT {moment} AT TIME ZONE {zone} - {moment} AT TIME ZONE 'UTC' AS apart"
            " OFFSET 0) clocks WHERE apart IS NOT NULL)"
        )
        return sql, [*of_moment, *of_zone, *of_moment]


class Joined(Func):
    function = "array_to_string"
    template = "%(function)s(%(expressions)s, ', ')"
    output_field = TextField()


class Worded(Func):
    """The words for a code, of ``words``; ``otherwise`` for any other code."""

    output_field = TextField()

    def __init__(self, code: Expression, words: dict[str, str], otherwise: Expression):
        super().__init__(code, otherwise)
        self.words = words

    def as_sql(self, compiler, connection, **context):
        code, of_code = compiler.compile(self.source_expressions[0])
        otherwise, of_otherwise = compiler.compile(self.source_expressions[1])
        whens = " ".join(["WHEN %s THEN %s"] * len(self.words))
        pairs = [text for pair in self.words.items() for text in pair]
        return f"CASE {code} {whens} ELSE {otherwise} END", [*of_code, *pairs, *of_otherwise]


def labels_of(choices) -> dict[str, str]:
    """Each value's label in the active language."""
    return {str(value): str(label) for value, label in choices.choices}


def label(field: str, choices) -> Expression:
    """The choice's label in the active language; a value without one as it is."""
    whens = [When(**{field: value}, then=Value(text)) for value, text in labels_of(choices).items()]
    return Case(*whens, default=F(field), output_field=CharField())


def person(role: str, *otherwise: Expression) -> Expression:
    """As ``User.display_name``: the full name, or else the user name. If there is nobody, the
    first of ``otherwise`` that is not empty, or nothing."""
    full_name = Trim(Concat(f"{role}__first_name", Value(" "), f"{role}__last_name"))
    texts = [NullIf(text, Value("")) for text in (full_name, F(f"{role}__username"), *otherwise)]
    return Coalesce(*texts, output_field=TextField())
