"""The parameters of a ticket list as a form: what each may be, and how a wrong one is named."""

import re
from collections.abc import Iterable
from datetime import date, datetime, timedelta

from django import forms
from django.db.models import Q
from django.utils import timezone
from django.utils.dateparse import parse_date, parse_datetime
from django.utils.functional import cached_property
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from tickets.models import Team, Ticket, TicketPriority, TicketStatus, User
from tickets.models.editable import COMMAS

MAX_IDS = 1000  # tickets chosen one by one
SORTS = ("updated", "created", "due", "priority", "status", "subject", "id")


# A plus sign that nobody escaped arrives as a blank.
_FROM_TODAY = re.compile(r"today(?:([-+ ])([0-9]{1,4}))?", re.IGNORECASE)


class LooseText(forms.CharField):
    """Text that any input becomes: what PostgreSQL cannot take could not be found either."""

    def to_python(self, value):
        text = str(value or "").replace("\0", " ")
        return super().to_python(text.encode("utf-8", "ignore").decode())


class DayOrMoment(forms.Field):
    """A day in the active time zone, ``2026-05-01`` or counted from today (``today``,
    ``today-6``), or a moment in ISO 8601."""

    widget = forms.DateInput(attrs={"type": "date"})

    def to_python(self, value) -> date | datetime | None:
        text = str(value or "").strip()
        if not text:
            return None
        if counted := _FROM_TODAY.fullmatch(text):
            days = int(counted[2] or 0)
            return timezone.localdate() + timedelta(days=-days if counted[1] == "-" else days)
        try:
            found = parse_date(text) or parse_datetime(text)
            # A plus sign that nobody escaped arrives as a blank.
            found = found or parse_datetime(text.replace(" ", "+"))
        except ValueError:
            found = None
        # Outside these years a conversion between time zones can overflow.
        if found is None or not 1970 < found.year < 3000:
            raise forms.ValidationError(
                _("“%(value)s” is not a date like 2026-05-31.") % {"value": text[:50]}
            )
        if isinstance(found, datetime) and timezone.is_naive(found):
            found = timezone.make_aware(found)
        return found


class TagsInput(forms.TextInput):
    """One line of text for a repeatable parameter."""

    def value_from_datadict(self, data, files, name):
        return data.getlist(name)

    def format_value(self, value):
        return ", ".join(value) if isinstance(value, list) else value


class YesInput(forms.CheckboxInput):
    """A link may also say no."""

    def value_from_datadict(self, data, files, name):
        return data.get(name, "").strip().lower() not in {"", "0", "false", "no", "off"}


class Tags(forms.MultipleChoiceField):
    """Any tags; commas separate them."""

    widget = TagsInput

    def to_python(self, value):
        parts = [value] if isinstance(value, str) else list(value or ())
        words = [LooseText().to_python(word) for part in parts for word in COMMAS.split(str(part))]
        return [word for word in words if word]

    def validate(self, value):
        if any(len(word) > 50 for word in value):
            raise forms.ValidationError(_("A tag has at most 50 characters."))


class TicketIds(forms.MultipleChoiceField):
    """Numbers of tickets, chosen one by one. Whether one may see them is not asked here."""

    widget = forms.MultipleHiddenInput

    def to_python(self, value):
        texts = [str(each).strip().removeprefix("#") for each in value or ()]
        return [text for text in texts if text]

    def validate(self, value):
        for text in value:
            if not (text.isascii() and text.isdecimal() and len(text) < 19):
                raise forms.ValidationError(
                    _("“%(value)s” is not the number of a ticket.") % {"value": text[:50]}
                )
        if len(value) > MAX_IDS:
            raise forms.ValidationError(
                _("At most %(count)s tickets can be chosen one by one.") % {"count": MAX_IDS}
            )

    def clean(self, value):
        return list(dict.fromkeys(str(int(text)) for text in super().clean(value)))


class TicketFilterForm(forms.Form):
    id = TicketIds(label=gettext_lazy("Tickets"), required=False)
    q = LooseText(label=gettext_lazy("Search"), max_length=200, required=False)
    status = forms.MultipleChoiceField(
        label=gettext_lazy("Status"), choices=TicketStatus, required=False
    )
    priority = forms.MultipleChoiceField(
        label=gettext_lazy("Priority"), choices=TicketPriority, required=False
    )
    team = forms.MultipleChoiceField(label=gettext_lazy("Team"), required=False)
    assignee = forms.ChoiceField(label=gettext_lazy("Assignee"), required=False)
    tags = Tags(label=gettext_lazy("Tags"), required=False)
    requester = LooseText(label=gettext_lazy("Requester"), max_length=200, required=False)
    created_after = DayOrMoment(label=gettext_lazy("Created from"), required=False)
    created_before = DayOrMoment(label=gettext_lazy("Created until"), required=False)
    updated_after = DayOrMoment(label=gettext_lazy("Updated from"), required=False)
    updated_before = DayOrMoment(label=gettext_lazy("Updated until"), required=False)
    due_after = DayOrMoment(label=gettext_lazy("Due from"), required=False)
    due_before = DayOrMoment(label=gettext_lazy("Due until"), required=False)
    responded_after = DayOrMoment(label=gettext_lazy("First response from"), required=False)
    responded_before = DayOrMoment(label=gettext_lazy("First response until"), required=False)
    resolved_after = DayOrMoment(label=gettext_lazy("Resolved from"), required=False)
    resolved_before = DayOrMoment(label=gettext_lazy("Resolved until"), required=False)
    overdue = forms.BooleanField(label=gettext_lazy("Overdue"), required=False, widget=YesInput)
    sort = forms.ChoiceField(
        label=gettext_lazy("Sort by"),
        required=False,
        choices=[(sign + key, sign + key) for key in SORTS for sign in ("", "-")],
    )

    def __init__(self, data, user, choices: "Choices | None" = None):
        super().__init__(data)
        choices = choices or Choices(user, [data.get("assignee", "")])
        # Functions: asked only if the page shows them or a parameter names one.
        self.fields["team"].choices = lambda: choices.teams
        self.fields["assignee"].choices = lambda: choices.assignees


class Choices:
    """What a person can filter by, asked once for any number of filters."""

    def __init__(self, user, chosen: Iterable[str] = ()):
        """``chosen``: values of ``assignee`` in those filters."""
        self._user = user
        self._chosen = {int(text) for text in chosen if text.isdecimal() and len(text) < 19}

    @cached_property
    def teams(self) -> list[tuple[str, str]]:
        teams = Team.objects.visible_to(self._user).order_by("name")
        return [(str(pk), name) for pk, name in teams.values_list("pk", "name")]

    @cached_property
    def assignees(self) -> list[tuple[str, str]]:
        """Me, nobody, and members of my teams; chosen ones too if they hold a visible ticket."""
        members = Q(is_active=True, memberships__team__in=Team.objects.visible_to(self._user))
        if self._chosen:
            held = Ticket.objects.visible_to(self._user).filter(assignee__in=self._chosen)
            members |= Q(pk__in=list(held.order_by().values_list("assignee", flat=True).distinct()))
        people = User.objects.filter(members).distinct().order_by("first_name", "username")
        return [
            ("", _("anyone")),
            ("me", _("me")),
            ("none", _("nobody")),
            *((str(person.pk), person.display_name) for person in people),
        ]
