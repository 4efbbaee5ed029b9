"""One row a change, in the words of the ticket's page."""

from django.db.models import (
    BigIntegerField,
    Case,
    DateTimeField,
    Expression,
    F,
    Func,
    JSONField,
    OuterRef,
    Subquery,
    TextField,
    Value,
    When,
)
from django.db.models.fields.json import KeyTextTransform
from django.db.models.functions import Cast, Coalesce
from django.utils.translation import gettext
from django.utils.translation import gettext_lazy as _

from tickets.models import Comment, EventKind, Ticket
from tickets.models.editable import EDITABLE, Choice, Moment
from tickets.models.editing import NOT_IN_NEW_TEAM
from tickets.models.ticket_event import IMPORT_RULE, REMINDER_RULE

from . import tickets
from .cells import LocalTime, Offset, Worded, labels_of
from .column import Column, Kind, Maker, name_of, time


class _JsonText(Func):
    """A JSON text without its quotes."""

    template = "(%(expressions)s #>> '{}')"
    output_field = TextField()


class _Moment(Func):
    """A text that is a moment in ISO 8601, as history stores it; of another text nothing, because
    an error would cost the whole file."""

    template = (
        "(CASE WHEN pg_input_is_valid(%(expressions)s, 'timestamptz')"
        " THEN %(expressions)s::timestamptz END)"
    )
    output_field = DateTimeField()

    def as_sql(self, compiler, connection, **context):
        sql, parameters = super().as_sql(compiler, connection, **context)
        return sql, [*parameters] * 2


class _Spoken(Func):
    """``2026-03-29 03:00:00 UTC+02:00``: among other texts a time says itself in which zone."""

    template = "(%(expressions)s)"
    arg_joiner = " || ' ' || "
    output_field = TextField()

    def __init__(self, moment: Expression, zone: str):
        super().__init__(Cast(LocalTime(moment), TextField()), Offset(moment, zone))


class _AsJson(Func):
    function = "to_jsonb"
    output_field = JSONField()


def _what(zone: str) -> Expression:
    commented = Worded(
        KeyTextTransform("is_public", "events__new_value"),
        {"true": gettext("Reply"), "false": gettext("Internal note")},
        Value(str(EventKind.COMMENTED.label)),
    )
    told = labels_of(EventKind) | {
        EventKind.CREATED.value: gettext("opened the ticket"),
        EventKind.IMPORTED.value: gettext("imported the ticket"),
    }
    return Case(
        When(events__kind=EventKind.COMMENTED, then=commented),
        default=Worded(F("events__kind"), told, F("events__kind")),
        output_field=TextField(),
    )


def _field(zone: str) -> Expression:
    names = {name: str(Ticket._meta.get_field(name).verbose_name) for name in EDITABLE}
    return Worded(F("events__field"), names, F("events__field"))


def _before(zone: str) -> Expression:
    return _told("old", zone)


def _after(zone: str) -> Expression:
    # A comment that was taken away is not on the page any more, although its event repeats it.
    number = Cast(KeyTextTransform("comment", OuterRef("events__new_value")), BigIntegerField())
    body = Comment.objects.filter(pk=number).order_by().values("body")
    return Case(
        When(events__kind=EventKind.COMMENTED, then=Subquery(body)),
        default=_told("new", zone),
        output_field=TextField(),
    )


def _for_programs(side: str, told: Maker) -> Maker:
    """The value itself of a field that changed: a number for a person, a list of tags."""

    def value(zone: str) -> Expression:
        changed = When(events__kind=EventKind.CHANGED, then=F(f"events__{side}_value"))
        return Case(changed, default=_AsJson(told(zone)), output_field=JSONField())

    return value


def _told(side: str, zone: str) -> Expression:
    """As ``TicketEvent.old_display`` and ``new_display``: anew for this reader where that can be,
    names as they were."""
    code, then = _JsonText(F(f"events__{side}_value")), F(f"events__{side}_text")
    whens = []
    for name, kind in EDITABLE.items():
        if isinstance(kind, Choice):
            shown = Worded(code, labels_of(kind.choices), then)
        elif isinstance(kind, Moment):
            shown = Coalesce(_Spoken(_Moment(code), zone), then)
        else:
            continue
        whens.append(When(events__field=name, then=shown))
    return Case(*whens, default=then, output_field=TextField())


def _reason(zone: str) -> Expression:
    rules = {rule: gettext(rule) for rule in (REMINDER_RULE, IMPORT_RULE, NOT_IN_NEW_TEAM)}
    return Worded(F("events__reason"), rules, F("events__reason"))


COLUMNS = {
    **{key: tickets.COLUMNS[key] for key in ("id", "team", "subject")},
    **time("at", _("When"), "events__at"),
    "actor": name_of(
        *(_("Who"), "events__actor", lambda zone: F("events__actor_text")),
        lambda zone: Value(gettext("System")),
    ),
    "what": Column(_("What"), Kind.LABEL, _what, lambda zone: F("events__kind")),
    "field": Column(_("Field"), Kind.LABEL, _field, lambda zone: F("events__field")),
    "before": Column(_("Before"), Kind.TEXT, _before, _for_programs("old", _before)),
    "after": Column(_("After"), Kind.TEXT, _after, _for_programs("new", _after)),
    "reason": Column(_("Reason"), Kind.TEXT, _reason, lambda zone: F("events__reason")),
}
