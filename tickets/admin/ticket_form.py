"""The admin's ticket form: what it saves, it saves through the verbs."""

from datetime import datetime

from django import forms
from django.core.exceptions import PermissionDenied, ValidationError
from django.db import transaction
from django.forms.models import model_to_dict
from django.utils import timezone
from django.utils.translation import gettext as _

from tickets.models import Ticket
from tickets.models.editable import EDITABLE

CHANGEABLE = list(EDITABLE)


class LocalMoment(forms.SplitDateTimeField):
    """As on the pages, the hour that clocks skip or show twice can be said: it is read by the rules
    before the change. Django's refuses it, also where nobody touched it."""

    def compress(self, data_list):
        try:
            return super().compress(data_list)
        except ValidationError as error:
            if error.code != "ambiguous_timezone":
                raise
            return timezone.make_aware(datetime.combine(*data_list))


class TicketForm(forms.ModelForm):
    """``actor``, the person who edits, is set by the admin on a subclass of each request."""

    actor = None
    # Not named "version": a form may not name the model's field of that name, which nobody edits.
    version_seen = forms.IntegerField(widget=forms.HiddenInput, required=False)

    class Meta:
        model = Ticket
        fields = CHANGEABLE

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        if "version_seen" in self.fields and self.instance.pk:
            self.fields["version_seen"].initial = self.instance.version

    def clean_due_at(self):
        # An untouched field shows less than is stored, see the form of the pages; it is no change.
        if self.instance.pk and "due_at" not in self.changed_data:
            return self.instance.due_at
        return self.cleaned_data["due_at"]

    def _post_clean(self):
        """In the place of ModelForm's own validation and of ``save``: the verb validates and writes
        at once, so its complaints still reach the form. The admin's view is one transaction."""
        if self.errors:
            return
        values = {name: self.cleaned_data[name] for name in CHANGEABLE if name in self.cleaned_data}
        try:
            with transaction.atomic():
                if self.instance.pk:
                    self._edit(values)
                else:
                    self.instance = Ticket.objects.open(by=self.actor, **values)
        except ValidationError as error:
            self._complain(error)
        except PermissionDenied as error:
            self.add_error("team", str(error) or _("You may not change tickets of this team."))

    def _edit(self, values: dict) -> None:
        version = self.cleaned_data.get("version_seen")
        edit = self.instance.edit(by=self.actor, changes=values, version=version)
        if not edit.conflicts:
            return
        self._show_stored(except_for={conflict.field for conflict in edit.conflicts})
        for conflict in edit.conflicts:
            text = _(
                "Someone else changed this meanwhile to “%(theirs)s”. Your value is kept here: "
                "save again to replace theirs. Your other changes are saved."
            )
            self.add_error(conflict.field, text % {"theirs": conflict.theirs_text})

    def _show_stored(self, except_for: set[str]) -> None:
        """Show the ticket as it is now, or saving again would undo what others changed."""
        self.data = self.data.copy()
        self.data[self.add_prefix("version_seen")] = self.instance.version
        stored = model_to_dict(self.instance, CHANGEABLE)
        for name in stored.keys() & self.fields.keys() - except_for:
            field, key = self.fields[name], self.add_prefix(name)
            value = field.prepare_value(stored[name])
            if isinstance(field.widget, forms.MultiWidget):
                for number, part in enumerate(field.widget.decompress(value)):
                    widget = field.widget.widgets[number]
                    self.data[f"{key}_{number}"] = widget.format_value(part) or ""
            else:
                self.data[key] = "" if value is None else value

    def _complain(self, error: ValidationError) -> None:
        complaints = getattr(error, "message_dict", None) or {None: error.messages}
        for name, texts in complaints.items():
            self.add_error(name if name in self.fields else None, texts)

    def save(self, commit=True):
        return self.instance

    def save_m2m(self):
        """There is none; the admin calls it."""
