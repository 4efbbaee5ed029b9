"""The doors to exports: who may come in, and how they are told that they may not."""

import functools

from django.http import (
    Http404,
    HttpRequest,
    HttpResponse,
    HttpResponseNotAllowed,
    JsonResponse,
)
from django.shortcuts import get_object_or_404
from django.utils.cache import patch_vary_headers
from django.utils.translation import gettext as _
from django_htmx.http import HttpResponseClientRefresh

from exports.models import Export, ScheduledExport
from tickets.access import log_in_first


def wants_json(request: HttpRequest) -> bool:
    """A program asks. Browsers, and those that accept anything, get pages."""
    return request.get_preferred_type(["text/html", "application/json"]) == "application/json"


def json_error(text: str, status: int) -> JsonResponse:
    return JsonResponse({"error": text}, status=status)


def for_people_and_programs(*methods: str):
    """Decorator: a logged-in person's page that is JSON for ``Accept: application/json``.

    A program without a session gets 401 and not a log-in page; what it may not do or what is not
    there it is told in JSON.
    """

    def decorate(view):
        @functools.wraps(view)
        def open_door(request, *args, **kwargs) -> HttpResponse:
            answer = _for_program if wants_json(request) else _for_person
            if request.method in methods:
                response = answer(view, request, *args, **kwargs)
            else:
                response = _not_allowed(request, methods)
            # One address, three representations: a cache must not take one for the other.
            patch_vary_headers(response, ["Accept", "HX-Request"])
            return response

        return open_door

    return decorate


def _for_program(view, request, *args, **kwargs) -> HttpResponse:
    if not request.user.is_authenticated:
        return json_error(_("Log in first."), 401)
    try:
        return view(request, *args, **kwargs)
    except Http404:
        return json_error(_("There is no such export."), 404)


def _for_person(view, request, *args, **kwargs) -> HttpResponse:
    if request.user.is_authenticated:
        return view(request, *args, **kwargs)
    if request.htmx:
        # A fragment must not turn into a log-in page: reload the page around it.
        return HttpResponseClientRefresh()
    return log_in_first(request)


def _not_allowed(request, methods) -> HttpResponse:
    if not wants_json(request):
        return HttpResponseNotAllowed(methods)
    response = json_error(
        _("This address answers %(methods)s only.") % {"methods": ", ".join(methods)}, 405
    )
    response.headers["Allow"] = ", ".join(methods)
    return response


def own_export_or_404(user, pk: int) -> Export:
    """Only who asked for it: another person's rights to its tickets may differ."""
    exports = Export.objects.of(user).with_state().select_related("requester")
    return get_object_or_404(exports, pk=pk)


def own_schedule_or_404(user, pk: int) -> ScheduledExport:
    return get_object_or_404(ScheduledExport.objects.of(user), pk=pk)
