"""Pages and JSON of exports. Each finds its export through the access helper first."""

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _

from exports.access import for_people_and_programs, json_error, own_export_or_404, wants_json
from exports.models import Export, LimitReached
from tasks.models import DedupConflict
from tickets.models import Team
from tickets.views.fragments import wants_fragment

PER_PAGE = 20


@for_people_and_programs("GET", "HEAD")
def export_list(request: HttpRequest) -> HttpResponse:
    exports = (
        Export.objects.of(request.user).with_state().select_related("requester").order_by("-task")
    )
    page = Paginator(exports, PER_PAGE).get_page(request.GET.get("page"))
    visible_teams = set(Team.objects.visible_to(request.user).values_list("pk", flat=True))
    for export in page:
        export.may_be_downloaded = export.is_ready and export.shows_only(visible_teams)
    context = {"page": page, "any_is_live": any(export.task.is_live for export in page)}
    template = "exports/_list.html" if wants_fragment(request) else "exports/list.html"
    return render(request, template, context)


@for_people_and_programs("GET", "HEAD")
def export_detail(request: HttpRequest, pk: int) -> HttpResponse:
    export = own_export_or_404(request.user, pk)
    return _shown(request, export)


@for_people_and_programs("POST")
def export_retry(request: HttpRequest, pk: int) -> HttpResponse:
    export = own_export_or_404(request.user, pk)
    try:
        export.retry(by=request.user)
    except DedupConflict:
        text = _("The same export is under way already.")
        if wants_json(request):
            return json_error(text, 409)
        messages.warning(request, text)
    except LimitReached as limit:
        if wants_json(request):
            return json_error(limit.message, limit.status)
        return _shown(request, own_export_or_404(request.user, pk), 422, limit.message)
    return _changed(request, pk)


@for_people_and_programs("POST")
def export_cancel(request: HttpRequest, pk: int) -> HttpResponse:
    export = own_export_or_404(request.user, pk)
    export.cancel(by=request.user)
    return _changed(request, pk)


@for_people_and_programs("POST")
def export_discard(request: HttpRequest, pk: int) -> HttpResponse:
    export = own_export_or_404(request.user, pk)
    export.discard(by=request.user)
    return _changed(request, pk)


def _changed(request: HttpRequest, pk: int) -> HttpResponse:
    """Where it stands now, whoever changed it: a second click is no error."""
    if wants_json(request):
        return JsonResponse(_as_json(request, own_export_or_404(request.user, pk)))
    return redirect("export_detail", pk=pk)


def _shown(request: HttpRequest, export: Export, status: int = 200, refusal: str = ""):
    if wants_json(request):
        return JsonResponse(_as_json(request, export))
    context = {
        "export": export,
        "refusal": refusal,
        "is_visible": export.is_visible_to(request.user),
    }
    template = "exports/_state.html" if wants_fragment(request) else "exports/detail.html"
    return render(request, template, context, status=status)


def refused(request: HttpRequest, export: Export, text: str, status: int) -> HttpResponse:
    """The export's page with the reason on it; for programs the reason alone."""
    if wants_json(request):
        return json_error(text, status)
    return _shown(request, export, status, text)


def _as_json(request: HttpRequest, export: Export) -> dict:
    task = export.task
    ready = export.is_ready and export.is_visible_to(request.user)
    return {
        "id": export.pk,
        "status": task.status,
        "progress_done": task.progress_done,
        "progress_total": task.progress_total,
        "rows": export.rows,
        "bytes": export.size,
        "expires_at": task.expires_at,
        "error": export.error,
        "download_url": reverse("export_download", args=[export.pk]) if ready else None,
    }
