"""Saved views: keeping a list under a name, changing, sharing, ordering and deleting it."""

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from tickets.access import changeable_view_or_404, posted_by_person, visible_view_or_404
from tickets.columns import COLUMNS, USUAL_FIELDS, known_fields
from tickets.filter_form import Choices
from tickets.filters import TicketFilter, pairs
from tickets.models import ListSettings, Membership, Role, SavedView, ViewChanged
from tickets.view_form import SavedViewForm

from .once import new_submission, once


@require_safe
@login_required
def saved_view_list(request: HttpRequest) -> HttpResponse:
    person, zone = request.user, timezone.get_current_timezone()
    visible = SavedView.objects.visible_to(person).select_related("team", "owner")
    views = ListSettings.objects.of(person).in_order(visible)
    led = set(
        Membership.objects.filter(user=person, role=Role.LEAD).values_list("team_id", flat=True)
    )
    queries = {view: view.query(zone) for view in views}
    choices = Choices(person, [query.get("assignee", "") for query in queries.values()])
    for view in views:
        filters = TicketFilter(queries[view], person, choices)
        view.told, view.complaints = filters.describe(), filters.complaints()
        view.may_change = view.owner_id == person.pk or view.team_id in led or person.is_superuser
    return render(request, "tickets/views/list.html", {"views": views})


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def saved_view_new(request: HttpRequest) -> HttpResponse:
    """Takes the list's own parameters, in its address or, of its own form, in the body."""
    posted = request.method == "POST"
    given = request.POST if posted else request.GET
    filters = TicketFilter(given, request.user)
    columns = known_fields(given.getlist("columns"))
    initial = {"name": _name_of(filters), "columns": columns or USUAL_FIELDS}
    form = SavedViewForm(given if posted else None, person=request.user, initial=initial)
    if posted and form.is_valid():
        kept = {"filters": filters.query, "zone": _zone()}

        def save() -> int:
            return SavedView.objects.save_view(request.user, **form.choices, **kept).pk

        try:
            pk = once(request, save)
        except ValidationError as error:
            form.add_error(None, error)
        else:
            messages.success(
                request, _("The view “%(name)s” is saved.") % {"name": form.choices["name"]}
            )
            return _to_list(pk)
    page = {"submission": request.POST.get("submission") or new_submission(), "replaces": True}
    return _form_page(request, "new", form, filters, page)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def saved_view_edit(request: HttpRequest, pk: int) -> HttpResponse:
    """Takes other filters, which it is to have from now on, as ``saved_view_new`` does. Without
    any it keeps its own, those too that do not fit who changes its name."""
    view = changeable_view_or_404(request.user, pk)
    posted = request.method == "POST"
    given = request.POST if posted else request.GET
    replaces = "replaces" in given if posted else bool(given)
    own = view.query(timezone.get_current_timezone())
    filters = TicketFilter(given if replaces else own, request.user)
    columns = known_fields(given.getlist("columns")) or known_fields(view.columns)
    initial = {
        "name": view.name,
        "shared_with": view.team_id or "",
        "columns": columns,
        "version": view.version,
    }
    form = SavedViewForm(given if posted else None, person=request.user, view=view, initial=initial)
    page, status = {"view": view, "replaces": replaces}, None
    if posted and form.is_valid():
        kept = {"filters": filters.query, "zone": _zone()} if replaces else {}
        try:
            view.change(request.user, form.cleaned_data["version"] or 0, **form.choices, **kept)
        except ViewChanged as changed:
            form, status = _with_version(form, changed.view.version), 409
            theirs = changed.view.query(timezone.get_current_timezone())
            page["theirs"] = changed.view
            page["theirs_told"] = TicketFilter(theirs, request.user).describe()
            page["theirs_columns"] = _titles(changed.view.columns)
        except ValidationError as error:
            form.add_error(None, error)
        except SavedView.DoesNotExist as error:
            raise Http404 from error
        else:
            messages.success(
                request, _("The view “%(name)s” is saved.") % {"name": form.choices["name"]}
            )
            return _to_list(pk)
    return _form_page(request, "edit", form, filters, page, status)


@posted_by_person
def saved_view_move(request: HttpRequest, pk: int) -> HttpResponse:
    """One place up or down, in the order of the person alone."""
    view = visible_view_or_404(request.user, pk)
    places = -1 if request.POST.get("direction") == "up" else 1
    ListSettings.objects.move_view(request.user, view, places)
    return redirect(f"{reverse('saved_view_list')}#view-{pk}")


@posted_by_person
def saved_view_delete(request: HttpRequest, pk: int) -> HttpResponse:
    view = changeable_view_or_404(request.user, pk)
    try:
        view.discard(by=request.user)
    except SavedView.DoesNotExist as error:
        raise Http404 from error
    messages.success(request, _("The view “%(name)s” is deleted.") % {"name": view})
    return redirect("saved_view_list")


def _zone() -> str:
    return timezone.get_current_timezone_name()


def _to_list(pk: int) -> HttpResponse:
    return redirect(f"{reverse('ticket_list')}?view={pk}")


def _name_of(filters: TicketFilter) -> str:
    """What a new one is called unless it is given a name: the filters in words."""
    words = ", ".join(str(value) for _label, value in filters.describe())
    return capfirst(words or _("All tickets"))[:60]


def _titles(fields: list[str]) -> list[str]:
    return [str(column.label) for column in COLUMNS if column.field in fields]


def _with_version(form: SavedViewForm, version: int) -> SavedViewForm:
    """The same form with all that was typed; saving it again decides against the other one."""
    form.data = form.data.copy()
    form.data["version"] = str(version)
    return form


def _form_page(
    request, name: str, form: SavedViewForm, filters: TicketFilter, page: dict, status=None
) -> HttpResponse:
    page |= {
        "form": form,
        "filters": filters,
        "pairs": pairs(filters.query),
        "shown": filters.describe(),
        "complaints": filters.complaints(),
    }
    status = status or (422 if form.errors else 200)
    return render(request, f"tickets/views/{name}.html", page, status=status)
