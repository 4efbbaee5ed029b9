from django.contrib import admin
from django.contrib.auth import views as auth
from django.urls import include, path
from django.views.generic import RedirectView

from teamdesk.health import PROBES

urlpatterns = [
    path("", RedirectView.as_view(pattern_name="ticket_list")),
    path("", include("tickets.urls")),
    path("", include("exports.urls")),
    path("accounts/login/", auth.LoginView.as_view(redirect_authenticated_user=True), name="login"),
    path("accounts/logout/", auth.LogoutView.as_view(), name="logout"),
    path("admin/", admin.site.urls),
    # ProbeMiddleware answers these first; here they have their names: healthz, readyz, metrics.
    *(path(url[1:], view, name=view.__name__) for url, view in PROBES.items()),
]
