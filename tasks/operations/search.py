"""Finding tasks by ticket, owner, kind, state or error."""

from django import forms
from django.contrib.auth import get_user_model
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from tasks import registry
from tasks.models import BackgroundTask, TaskStatus

ROWS = 50
ANSWER_MILLISECONDS = 3_000
_LARGEST_ID = 2**63 - 1


class SearchForm(forms.Form):
    """All that is filled in must hold. Nothing filled in finds nothing."""

    task = forms.IntegerField(label=_("Task"), required=False, min_value=1, max_value=_LARGEST_ID)
    ticket = forms.IntegerField(
        label=_("Ticket"), required=False, min_value=1, max_value=_LARGEST_ID
    )
    owner = forms.CharField(label=_("Owner"), required=False, max_length=150)
    kind = forms.ChoiceField(label=_("Kind"), required=False)
    status = forms.ChoiceField(
        label=_("Status"), required=False, choices=[("", _("any")), *TaskStatus.choices]
    )
    error = forms.CharField(label=_("Error contains"), required=False, max_length=200)

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        kinds = [(name, name) for name in sorted(registry.kinds())]
        self.fields["kind"].choices = [("", _("any")), *kinds]
        for name, field in self.fields.items():
            is_choice = isinstance(field, forms.ChoiceField)
            field.widget.attrs["class"] = "form-select" if is_choice else "form-control"
            if name in ("task", "ticket"):
                field.widget.attrs["placeholder"] = "#"

    @property
    def is_asked(self) -> bool:
        return any(self.data.get(name) for name in self.fields)

    def found(self) -> list[BackgroundTask]:
        """The newest ROWS + 1 that fit. The form is valid. Raises DatabaseError when that takes too
        long: an error's text is looked for in every row that the other fields leave."""
        asked = self.cleaned_data
        tasks = BackgroundTask.objects.select_related("owner").order_by("-id")
        if asked["task"]:
            tasks = tasks.filter(pk=asked["task"])
        if asked["ticket"]:
            tasks = tasks.filter(ticket=asked["ticket"])
        if asked["owner"]:
            tasks = tasks.filter(owner__in=_people(asked["owner"]))
        if asked["kind"]:
            tasks = tasks.filter(kind=asked["kind"])
        if asked["status"]:
            tasks = tasks.filter(status=asked["status"])
        if asked["error"]:
            tasks = tasks.filter(last_error__icontains=asked["error"])
        return list(tasks[: ROWS + 1])


def _people(text: str) -> list[int]:
    """Whose log-in, e-mail or name the text is; few enough to be listed."""
    people = get_user_model().objects.filter(
        Q(username__iexact=text)
        | Q(email__iexact=text)
        | Q(first_name__istartswith=text)
        | Q(last_name__istartswith=text)
    )
    return list(people.values_list("pk", flat=True)[:100])
