"""Logging in, and how a person likes to see things."""

from urllib.parse import urlsplit

from django import forms
from django.conf import settings
from django.contrib import messages
from django.contrib.auth import update_session_auth_hash
from django.contrib.auth import views as auth
from django.contrib.auth.decorators import login_required
from django.contrib.auth.forms import AuthenticationForm, PasswordChangeForm
from django.shortcuts import redirect, render
from django.utils import translation
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy
from django.views import csrf
from django.views.decorators.debug import sensitive_post_parameters
from django.views.decorators.http import require_POST
from django.views.i18n import set_language

from exports.access import json_error, wants_json
from tickets.access import posted_by_person
from tickets.forms import Styled
from tickets.models import NotificationKind, User
from tickets.models.notification_kind import mail_field
from tickets.models.user import time_zones


class LogInForm(Styled, AuthenticationForm):
    pass


class ProfileForm(Styled, forms.ModelForm):
    class Meta:
        model = User
        fields = ["first_name", "last_name", "language", "time_zone", "theme"]
        labels = {"first_name": gettext_lazy("first name"), "last_name": gettext_lazy("last name")}

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.fields["first_name"].widget.attrs["autocomplete"] = "given-name"
        self.fields["last_name"].widget.attrs["autocomplete"] = "family-name"
        self.fields["time_zone"].widget.attrs |= {"list": "time-zones", "autocomplete": "off"}


class MailForm(Styled, forms.ModelForm):
    """What is told by mail too: one box for each event."""

    class Meta:
        model = User
        fields = [mail_field(kind) for kind in NotificationKind]
        labels = {
            "mail_reminder": gettext_lazy("a ticket of mine is due"),
            "mail_assigned": gettext_lazy("a ticket is assigned to me"),
            "mail_commented": gettext_lazy("someone comments on a ticket of mine"),
            "mail_export_ready": gettext_lazy("my export is ready"),
            "mail_export_paused": gettext_lazy("a scheduled export of mine is paused"),
        }


class ChangePasswordForm(Styled, PasswordChangeForm):
    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        del self.fields["old_password"].widget.attrs["autofocus"]  # it is not the page's first form


class LogIn(auth.LoginView):
    authentication_form = LogInForm
    redirect_authenticated_user = True
    template_name = "accounts/login.html"
    extra_context = {"languages": settings.LANGUAGES}

    def dispatch(self, request, *args, **kwargs):
        response = super().dispatch(request, *args, **kwargs)
        if request.htmx:
            # The session ended under an open page: load it anew, which leads here and back again,
            # instead of showing this page inside a fragment.
            response.headers["HX-Refresh"] = "true"
        return response

    def get_redirect_url(self):
        # Whoever is logged in is sent on; a link that leads back here would never end.
        url = super().get_redirect_url()
        return "" if urlsplit(url).path == self.request.path else url


@login_required
def profile(request):
    data = request.POST if request.method == "POST" else None
    form = ProfileForm(data, instance=request.user)
    if request.method == "POST" and form.is_valid():
        form.save()
        with translation.override(form.instance.language or translation.get_language()):
            messages.success(request, _("Your settings are saved."))
        return redirect("profile")
    if form.errors:
        # The page shows the person as stored, not as mistyped.
        request.user.refresh_from_db()
    return _profile_page(request, form=form)


@posted_by_person
def mail_preferences(request):
    MailForm(request.POST, instance=request.user).save()  # boxes: nothing can be wrong
    messages.success(request, _("Your settings are saved."))
    return redirect("profile")


@sensitive_post_parameters()
@posted_by_person
def change_password(request):
    form = ChangePasswordForm(request.user, request.POST)
    if not form.is_valid():
        return _profile_page(request, password_form=form)
    form.save()
    update_session_auth_hash(request, form.user)  # other sessions end, this one stays
    messages.success(request, _("Your password is changed."))
    return redirect("profile")


def _profile_page(request, form=None, password_form=None):
    page = {
        "form": form or ProfileForm(instance=request.user),
        "mail_form": MailForm(instance=request.user),
        "is_mail_sent": settings.TEAMDESK_MAIL,
        "password_form": password_form or ChangePasswordForm(request.user),
        "time_zones": sorted(time_zones()),
    }
    wrong = page["form"].errors or page["password_form"].errors
    return render(request, "accounts/profile.html", page, status=422 if wrong else 200)


@require_POST
def choose_language(request):
    """For anonymous visitors a cookie; whoever is logged in keeps it as a setting."""
    chosen = request.POST.get("language")
    if request.user.is_authenticated and chosen in dict(settings.LANGUAGES):
        request.user.language = chosen
        request.user.save(update_fields=["language"])
    return set_language(request)


def csrf_failure(request, reason=""):
    """The page that says so; JSON for a program."""
    if wants_json(request):
        return json_error(_("The CSRF token is missing or wrong."), 403)
    return csrf.csrf_failure(request, reason)
