"""Choosing a person or a team among many, by typing."""

import re

from django.contrib.admin.widgets import AutocompleteSelect

NUMBER = re.compile("[0-9]{1,18}")


class _Autocomplete(AutocompleteSelect):
    """Django's looks up what was posted even if it is no number, which ends in a server error
    instead of the form's complaint."""

    def optgroups(self, name, value, attrs=None):
        return super().optgroups(name, [v for v in value if NUMBER.fullmatch(str(v))], attrs)


class Autocompleting:
    """For admins and inlines with ``autocomplete_fields``."""

    def formfield_for_foreignkey(self, db_field, request, **kwargs):
        if db_field.name in self.get_autocomplete_fields(request):
            kwargs["widget"] = _Autocomplete(db_field, self.admin_site)
        return super().formfield_for_foreignkey(db_field, request, **kwargs)
