"""The forms of the pages. They turn what was typed into values; the verbs judge those."""

from datetime import datetime, timedelta

from django import forms
from django.utils import timezone
from django.utils.dateparse import parse_datetime
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tickets.models import Team, TicketPriority, TicketStatus, User
from tickets.models.editable import EDITABLE
from tickets.models.team import WORKING_ROLES

_CLASSES = {
    forms.Select: "form-select",
    forms.CheckboxInput: "form-check-input",
    forms.CheckboxSelectMultiple: "form-check-input",
}


class Styled:
    """Mixin of forms: widgets get the CSS library's classes."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        for field in self.fields.values():
            widget = field.widget
            kind = next((k for k in _CLASSES if isinstance(widget, k)), None)
            classes = widget.attrs.get("class", "")
            widget.attrs["class"] = f"{classes} {_CLASSES.get(kind, 'form-control')}".strip()
            if isinstance(field, forms.ChoiceField) and not isinstance(
                field, forms.ModelChoiceField
            ):
                field.choices = [(value, capfirst(label)) for value, label in field.choices]


def local_text(at: datetime | None) -> str:
    """What a datetime-local field shows for this moment, in the reader's zone."""
    if at is None:
        return ""
    local = timezone.localtime(at)
    return local.strftime("%Y-%m-%dT%H:%M:%S" if local.second else "%Y-%m-%dT%H:%M")


class MomentField(forms.Field):
    """A browser's datetime-local in the person's zone, or ISO 8601 with an offset."""

    widget = forms.DateTimeInput(attrs={"type": "datetime-local"})

    def to_python(self, value) -> datetime | None:
        text = str(value or "").strip()
        if not text:
            return None
        try:
            found = parse_datetime(text)
            if found and timezone.is_naive(found):
                found = timezone.make_aware(found)
        except (ValueError, OverflowError):
            found = None
        if found is None:
            raise forms.ValidationError(
                _("“%(value)s” is not a date and time like 2026-05-31T17:00.")
                % {"value": text[:50]}
            )
        return found


def due_presets() -> list[dict]:
    """Due dates people often want, in their own zone: what a button says and the moment."""
    now = timezone.localtime().replace(second=0, microsecond=0)

    def at(day, hour):
        return timezone.make_aware(datetime(day.year, day.month, day.day, hour))

    tomorrow = now.date() + timedelta(days=1)
    monday = now.date() + timedelta(days=7 - now.weekday())
    presets = [(_("in 1 hour"), now + timedelta(hours=1))]
    if now.hour < 17:
        presets.append((_("today 17:00"), at(now.date(), 17)))
    presets.append((_("tomorrow 9:00"), at(tomorrow, 9)))
    if monday != tomorrow:
        presets.append((_("next Monday 9:00"), at(monday, 9)))
    presets.append((_("in a week"), at(now.date() + timedelta(days=7), 9)))
    return [{"label": label, "value": local_text(moment)} for label, moment in presets]


class TicketForm(Styled, forms.Form):
    """A new ticket, or with ``ticket`` all fields of one that exists."""

    # In the order of the page, where those of WIDE take a line of their own.
    subject = forms.CharField(label=gettext_lazy("Subject"), max_length=200)
    description = forms.CharField(
        label=gettext_lazy("Description"), required=False, widget=forms.Textarea({"rows": 7})
    )
    team = forms.ModelChoiceField(
        label=gettext_lazy("Team"),
        queryset=Team.objects.none(),
        empty_label=gettext_lazy("Choose a team"),
    )
    assignee = forms.ModelChoiceField(
        label=gettext_lazy("Assignee"), queryset=User.objects.none(), required=False
    )
    priority = forms.ChoiceField(
        label=gettext_lazy("Priority"), choices=TicketPriority, initial=TicketPriority.NORMAL
    )
    status = forms.ChoiceField(
        label=gettext_lazy("Status"), choices=TicketStatus, initial=TicketStatus.OPEN
    )
    due_at = MomentField(label=gettext_lazy("Due"), required=False)
    requester_name = forms.CharField(
        label=gettext_lazy("Requester"), max_length=200, required=False
    )
    requester_email = forms.EmailField(
        label=gettext_lazy("Requester's e-mail"), max_length=254, required=False
    )
    tags = forms.CharField(
        label=gettext_lazy("Tags"),
        required=False,
        help_text=gettext_lazy("Separated by commas."),
    )
    version = forms.IntegerField(required=False, widget=forms.HiddenInput)
    WIDE = ("subject", "description", "due_at", "tags")

    def __init__(self, data=None, *, user, ticket=None):
        self.ticket = ticket
        super().__init__(data, initial=values_of(ticket) if ticket else None)
        teams = Team.objects.workable_by(user).order_by("name")
        self.fields["team"].queryset = teams
        self.fields["team"].widget.attrs["data-narrows"] = self["assignee"].auto_id
        self._offer_assignees(teams)
        if ticket is None:
            del self.fields["version"]
            # A new ticket is open unless its form says otherwise.
            self.fields["status"].required = self.fields["priority"].required = False
            if len(only := list(teams[:2])) == 1:
                self.fields["team"].initial = only[0]

    def _offer_assignees(self, teams):
        """Grouped by team, so that it works before any script has narrowed them down."""
        field = self.fields["assignee"]
        able = User.objects.filter(
            is_active=True, memberships__team__in=teams, memberships__role__in=WORKING_ROLES
        )
        present = User.objects.filter(pk=self.ticket.assignee_id) if self.ticket else None
        field.queryset = (able | present if present is not None else able).distinct()
        groups = {}
        rows = able.order_by("memberships__team__name", "first_name", "username").values_list(
            "memberships__team__name", "pk", "first_name", "last_name", "username"
        )
        for team, pk, first, last, username in rows:
            groups.setdefault(team, []).append((pk, f"{first} {last}".strip() or username))
        offered = {pk for people in groups.values() for pk, _name in people}
        choices = [("", _("nobody yet")), *groups.items()]
        if self.ticket and self.ticket.assignee and self.ticket.assignee_id not in offered:
            person = self.ticket.assignee
            choices.insert(1, (person.pk, person.display_name))
        field.choices = choices

    def clean_due_at(self):
        # An untouched field shows less than is stored (no microseconds, no second 2:30 when
        # clocks go back); it is no change.
        if self.ticket and self.data.get("due_at") == local_text(self.ticket.due_at):
            return self.ticket.due_at
        return self.cleaned_data["due_at"]

    def left_alone(self, conflict) -> bool:
        """Does the field say what the page showed? Another's change then meets none of mine."""
        if conflict.field != "due_at" or conflict.base is None:
            return False
        return self.data.get("due_at") == local_text(parse_datetime(conflict.base))

    def clean_status(self):
        return self.cleaned_data["status"] or TicketStatus.OPEN

    def clean_priority(self):
        return self.cleaned_data["priority"] or TicketPriority.NORMAL

    @property
    def changes(self) -> dict:
        """The values for the verbs. Fields that the request left out are not changed."""
        return {
            name: value
            for name, value in self.cleaned_data.items()
            if name != "version" and (self.ticket is None or not self._is_left_out(name))
        }

    def _is_left_out(self, name) -> bool:
        # The widget knows: a checkbox without its tick is not sent, and means no.
        widget = self.fields[name].widget
        return widget.value_omitted_from_data(self.data, self.files, self.add_prefix(name))


def values_of(ticket) -> dict:
    """What the form's fields show for this ticket."""
    shown = {name: _shown(ticket.serializable_value(name)) for name in EDITABLE}
    return shown | {"version": ticket.version}


def _shown(value):
    match value:
        case None:
            return ""
        case datetime():
            return local_text(value)
        case list():
            return ", ".join(value)
    return value
