"""/exports/new/: what would be exported and how, and asking for it."""

import json
import uuid

from django.core.exceptions import ValidationError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from exports.access import for_people_and_programs, json_error, wants_json
from exports.forms import ExportForm
from exports.models import Export, LimitReached
from exports.parameters import filters_in, parameters_of, readable
from exports.rows import rows_of
from tickets.filters import TicketFilter, pairs
from tickets.models.user import time_zones
from tickets.views.fragments import wants_fragment


@for_people_and_programs("GET", "HEAD", "POST")
def export_new(request: HttpRequest) -> HttpResponse:
    """Shows what would be exported; POST asks for it: 302 to the export, or 202 for a program."""
    try:
        parameters = parameters_of(request)
    except ValidationError as error:
        return json_error(" ".join(error.messages), 400)
    filters = TicketFilter(filters_in(parameters), request.user)
    if parameters.get("selected") and not filters.query.get("id"):
        # Or a button under the list that says "selected" would export all of it.
        filters.errors.setdefault("id", [_("Choose at least one ticket in the list.")])
    if request.method != "POST":
        return _page(request, filters, _offer(request, parameters))
    form = ExportForm(parameters)
    if form.asks_for_a_look and not wants_json(request):
        return _page(request, filters, _offer(request, parameters), looks_again=True)
    if form.is_valid() and not filters.errors:
        return _asked(request, filters, form)
    if wants_json(request):
        return json_error(" ".join(readable(filters.errors) + readable(form.errors)), 400)
    return _page(request, filters, form, status=422)


def _offer(request: HttpRequest, parameters) -> ExportForm:
    parameters = parameters.copy()
    if parameters.get("shown_kind", "") not in ("", parameters.get("row_kind", "")):
        parameters.pop("columns", None)  # those of another kind of rows
    languages = request.headers.get("Accept-Language", "")
    return ExportForm.offered_to(request.user, parameters, languages)


def _asked(request: HttpRequest, filters: TicketFilter, form: ExportForm) -> HttpResponse:
    chosen = form.cleaned_data
    try:
        export = Export.objects.request(
            request.user, filters.query, chosen["columns"], chosen["key"], **form.file_choices()
        )
    except LimitReached as limit:
        if wants_json(request):
            return json_error(limit.message, limit.status)
        return _page(request, filters, form, status=422)
    url = reverse("export_detail", args=[export.pk])
    if wants_json(request):
        body = {"id": export.pk, "status": export.task.status, "url": url}
        return JsonResponse(body, status=202, headers={"Location": url})
    if chosen["key"]:  # of the page, and not of a button that asks for an old export's file again
        form.remember(by=request.user)
    return redirect(url)


def _refusal(person, filters: TicketFilter, row_kind: str, rows: int) -> str:
    """Why asking would be refused now. It is said before somebody has chosen anything."""
    try:
        Export.objects.refuse_rows(filters.queryset(), row_kind, rows)
        Export.objects.refuse_more_of(person)
    except LimitReached as limit:
        return limit.message
    return ""


def _key_of(form: ExportForm) -> uuid.UUID:
    """The page's: of one that is shown once more the same as before, if it had one."""
    return form.cleaned_data.get("key") or uuid.uuid4() if form.is_bound else form.initial["key"]


def _page(
    request: HttpRequest,
    filters: TicketFilter,
    form: ExportForm,
    *,
    status: int = 200,
    looks_again: bool = False,
) -> HttpResponse:
    rows, refusal = None, ""
    if not filters.errors:
        rows = rows_of(filters.queryset(), form.offered_kind).count()
        refusal = _refusal(request.user, filters, form.offered_kind, rows)
    context = {
        "form": form,
        "key": _key_of(form),
        "filters": filters,
        "pairs": pairs(filters.query),
        "shown": filters.describe(),
        "errors": filters.complaints(),
        "rows": rows,
        "refusal": refusal,
        "looks_again": looks_again,
        "time_zones": sorted(time_zones()),
    }
    fragment = wants_fragment(request)
    template = "exports/_dialog.html" if fragment else "exports/new.html"
    response = render(request, template, context, status=status)
    if fragment and rows is not None:
        said = ngettext("%(count)d row", "%(count)d rows", rows) % {"count": rows}
        response.headers["HX-Trigger"] = json.dumps({"say": said})
    return response
