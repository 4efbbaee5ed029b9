"""Pages of scheduled exports, each for its owner alone."""

import uuid

from django.contrib import messages
from django.contrib.auth.decorators import login_required
from django.core.exceptions import ValidationError
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect, render
from django.utils import formats, timezone
from django.utils.text import capfirst
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_safe

from exports.access import own_schedule_or_404
from exports.forms import ExportForm
from exports.models import LimitReached, RowKind, ScheduledExport
from exports.parameters import OF_THE_PAGE
from exports.schedules.forms import OnceForm, ScheduleForm, file_in, row_kind_in, values_of
from tickets.access import posted_by_person
from tickets.filters import TicketFilter, pairs
from tickets.models.user import time_zones
from tickets.views.once import new_submission, once

PER_PAGE = 50


@require_safe
@login_required
def schedule_list(request: HttpRequest) -> HttpResponse:
    schedules = ScheduledExport.objects.of(request.user).with_state().order_by("name", "pk")
    page = Paginator(schedules, PER_PAGE).get_page(request.GET.get("page"))
    # A new key for each page shown, so that a double click on "Run now" is one export.
    return render(request, "exports/schedules/list.html", {"page": page, "key": uuid.uuid4()})


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def schedule_new(request: HttpRequest) -> HttpResponse:
    """Takes what the page of a new export takes, in its address or, with ``repeat``, in a POST of
    that page's form: what it has chosen may be too long for an address."""
    given = request.POST if request.method == "POST" else request.GET
    filters = TicketFilter(given, request.user)
    offered = _offered(request, given)
    initial = {"name": _name_of(filters), "zone": request.user.zone.key} | offered
    form = _form(request, offered["row_kind"], initial)
    if form.is_bound and form.is_valid():

        def schedule() -> int:
            made = ScheduledExport.objects.schedule(request.user, filters=given, **form.choices)
            return made.pk

        try:
            pk = once(request, schedule)
        except ValidationError as error:
            form.add_error(None, error)
        else:
            for scheduled in ScheduledExport.objects.of(request.user).filter(pk=pk):
                _say_when(request, scheduled)
            return redirect("export_schedule_list")
    others = ScheduledExport.objects.of(request.user).order_by("name")
    page = {
        "others": () if form.is_bound else others,
        "choices": _whole_choices(given, form),
        "submission": request.POST.get("submission") or new_submission(),
    }
    return _form_page(request, "new", form, filters, page)


@require_http_methods(["GET", "HEAD", "POST"])
@login_required
def schedule_edit(request: HttpRequest, pk: int) -> HttpResponse:
    """Takes another export, that it is to make from now on, as ``schedule_new`` does."""
    scheduled = own_schedule_or_404(request.user, pk)
    given = request.POST if request.method == "POST" else request.GET
    filters, row_kind = TicketFilter(given, request.user), row_kind_in(given)
    if not (filters.query or filters.errors or file_in(given, request.user)):
        row_kind = scheduled.row_kind
        with timezone.override(scheduled.filters_zone):
            filters = TicketFilter(scheduled.filters, request.user)
    initial = values_of(scheduled)
    if row_kind != scheduled.row_kind:
        del initial["columns"]  # those of other rows
    form = _form(request, row_kind, initial | file_in(given, request.user))
    if form.is_bound and form.is_valid():
        try:
            scheduled.edit(request.user, filters=given, **form.choices)
        except ValidationError as error:
            form.add_error(None, error)
            scheduled = own_schedule_or_404(request.user, pk)
        except ScheduledExport.DoesNotExist as error:
            raise Http404 from error
        else:
            _say_when(request, scheduled)
            return redirect("export_schedule_list")
    return _form_page(request, "edit", form, filters, {"scheduled": scheduled})


@posted_by_person
def schedule_verb(request: HttpRequest, pk: int, verb: str) -> HttpResponse:
    scheduled = own_schedule_or_404(request.user, pk)
    if verb not in VERBS:
        raise Http404
    try:
        return VERBS[verb](request, scheduled) or redirect("export_schedule_list")
    except ValidationError as error:
        messages.error(request, " ".join(error.messages))
        return redirect("export_schedule_list")
    except LimitReached as limit:
        messages.error(request, str(limit))
        return redirect("export_schedule_list")
    except ScheduledExport.DoesNotExist as error:
        raise Http404 from error


def _pause(request, scheduled):
    if scheduled.pause(by=request.user):
        messages.success(request, _("“%(name)s” is paused.") % {"name": scheduled})


def _resume(request, scheduled):
    if scheduled.resume(by=request.user):
        _say_when(request, scheduled)


def _delete(request, scheduled):
    if scheduled.discard(by=request.user):
        messages.success(request, _("“%(name)s” is deleted.") % {"name": scheduled})


def _run(request, scheduled):
    form = OnceForm(request.POST)
    key = form.cleaned_data["key"] if form.is_valid() else None
    return redirect("export_detail", pk=scheduled.run_now(by=request.user, key=key).pk)


VERBS = {"pause": _pause, "resume": _resume, "delete": _delete, "run": _run}


def _say_when(request, scheduled) -> None:
    if scheduled.is_paused:
        messages.success(request, _("“%(name)s” is saved. It is paused.") % {"name": scheduled})
        return
    next_run = formats.date_format(timezone.localtime(scheduled.next_run_at), "DATETIME_FORMAT")
    text = _("“%(name)s” runs next on %(when)s.") % {"name": scheduled, "when": next_run}
    messages.success(request, text)


def _form(request, row_kind: str, initial: dict) -> ScheduleForm:
    data = request.POST if request.method == "POST" and "repeat" not in request.POST else None
    return ScheduleForm(data, row_kind=row_kind, initial=initial)


def _form_page(request, name: str, form, filters: TicketFilter, page: dict) -> HttpResponse:
    page |= {
        "form": form,
        "row_kind": RowKind(form.row_kind),
        "filters": filters,
        "pairs": pairs(filters.query),
        "shown": filters.describe(),
        "complaints": filters.complaints(),
        "time_zones": sorted(time_zones()),
    }
    status = 422 if form.errors else 200
    return render(request, f"exports/schedules/{name}.html", page, status=status)


def _offered(request, given: QueryDict) -> dict:
    """What the page of a new export would offer: what is asked for, or was chosen last."""
    languages = request.headers.get("Accept-Language", "")
    offered = QueryDict(mutable=True)
    for name, value in ExportForm.offered_to(request.user, given, languages).initial.items():
        offered.setlist(name, value if isinstance(value, list) else [value])
    return file_in(offered, request.user)


def _whole_choices(given: QueryDict, form: ScheduleForm) -> list[tuple[str, str]]:
    """Names and values of those that say something of the export; with columns in any case, so that
    they also say something of all tickets."""
    choices = given.copy()
    for name in (*OF_THE_PAGE, "repeat"):
        choices.pop(name, None)
    keys = [key for key in choices.getlist("columns") if key]
    choices.setlist("columns", keys or form.initial["columns"])
    return [(name, value) for name, values in choices.lists() for value in values]


def _name_of(filters: TicketFilter) -> str:
    """What a new one is called unless it is given a name: the filters in words."""
    words = ", ".join(str(value) for _label, value in filters.describe())
    limit = ScheduledExport._meta.get_field("name").max_length
    return capfirst(words or _("All tickets"))[:limit]
