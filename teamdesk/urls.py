from django.contrib import admin
from django.contrib.auth import views as auth
from django.urls import include, path
from django.views.generic import RedirectView

from teamdesk import accounts
from teamdesk.health import PROBES

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="ticket_list")),
    path("", include("tickets.urls")),
    path("", include("exports.urls")),
    path("", include("tasks.urls")),
    path("accounts/login/", accounts.LogIn.as_view(), name="login"),
    path("accounts/logout/", auth.LogoutView.as_view(), name="logout"),
    path("accounts/profile/", accounts.profile, name="profile"),
    path("accounts/mail/", accounts.mail_preferences, name="mail_preferences"),
    path("accounts/password/", accounts.change_password, name="change_password"),
    path("accounts/language/", accounts.choose_language, name="choose_language"),
    path("admin/", admin.site.urls),
    # ProbeMiddleware answers these first; here they have their names: healthz, readyz, metrics.
    *(path(url[1:], view, name=view.__name__) for url, view in PROBES.items()),
]
