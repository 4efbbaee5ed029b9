"""The names of the admin site."""

from django.contrib import admin
from django.utils.translation import gettext_lazy as _

admin.site.site_header = _("TeamDesk administration")
admin.site.site_title = _("TeamDesk administration")
admin.site.index_title = _("What to administer")
