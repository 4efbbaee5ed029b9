"""The doors to exports: who may come in, and how they are told that they may not."""

import functools

from django.contrib.auth.views import redirect_to_login
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import get_object_or_404
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext as _
from django_htmx.http import HttpResponseClientRefresh

from exports.models import Export


def wants_json(request: HttpRequest) -> bool:
    """A program asks. Browsers, and those that accept anything, get pages."""
    return request.get_preferred_type(["text/html", "application/json"]) == "application/json"


def json_error(text: str, status: int) -> JsonResponse:
    return JsonResponse({"error": text}, status=status)


def for_people_and_programs(view):
    """Decorator: a logged-in person's page that is JSON for ``Accept: application/json``.

    A program without a session gets 401 and not a log-in page; what is not there is 404 in JSON.
    """

    @functools.wraps(view)
    def open_door(request, *args, **kwargs) -> HttpResponse:
        program = wants_json(request)
        try:
            if request.user.is_authenticated:
                response = view(request, *args, **kwargs)
            elif program:
                response = json_error(_("Log in first."), 401)
            elif request.htmx:
                # A fragment must not turn into a log-in page: reload the page around it.
                response = HttpResponseClientRefresh()
            else:
                response = redirect_to_login(request.get_full_path())
        except Http404:
            if not program:
                raise
            response = json_error(_("There is no such export."), 404)
        # One address, three representations: a cache must not take one for the other.
        patch_vary_headers(response, ["Accept", "HX-Request"])
        return response

    return open_door


def own_export_or_404(user, pk: int) -> Export:
    """Only who asked for it: another person's rights to its tickets may differ."""
    return get_object_or_404(Export.objects.of(user).with_state(), pk=pk)
