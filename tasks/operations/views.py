"""Pages of operations: the whole ledger on one, the life of one task on another."""

from django.contrib import admin, messages
from django.db import DatabaseError
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_POST, require_safe

from tasks.admin import each_row, verbs
from tasks.models import BackgroundTask, TaskStatus
from tasks.transactions import answering_within

from . import search
from .access import for_operators, may_operate
from .charts import charts
from .figures import figures
from .history import SPANS, history
from .life import life
from .troubles import tasks_in, troubles

DEFAULT_HOURS = 24


@require_safe
@never_cache
@for_operators
def operations(request: HttpRequest) -> HttpResponse:
    """The page, or for htmx its part ``figures`` or ``troubles``, which ask for themselves."""
    span = SPANS.get(_number(request.GET.get("hours")), SPANS[DEFAULT_HOURS])
    context = {
        "span": span,
        "spans": SPANS.values(),
        "as_tables": request.GET.get("as") == "tables",
        "may_operate": may_operate(request.user),
    }
    part = request.GET.get("part") if request.htmx else None
    if part != "troubles":
        context |= _or_nothing(figures=figures, charts=lambda: charts(history(span), span))
    if part != "figures":
        context |= _or_nothing(troubles=troubles)
    if part in ("figures", "troubles"):
        return render(request, f"operations/_{part}.html", context)
    form = search.SearchForm(request.GET)
    context |= {"form": form, "is_asked": form.is_asked}
    if form.is_asked and form.is_valid():
        context |= _found(form)
    return render(request, "operations/home.html", context)


def _found(form: search.SearchForm) -> dict:
    try:
        with answering_within(search.ANSWER_MILLISECONDS):
            found = form.found()
    except DatabaseError:
        return {"is_too_much": True}
    return {"found": found[: search.ROWS], "has_more": len(found) > search.ROWS}


def _or_nothing(**questions) -> dict:
    """The answers; None for one that PostgreSQL did not give in time, and the page says so."""
    answers = {}
    for name, ask in questions.items():
        try:
            answers[name] = ask()
        except DatabaseError:
            answers[name] = None
    return answers


@require_POST
@for_operators
def operations_group(request: HttpRequest) -> HttpResponse:
    """Retry or cancel all tasks of a group of troubles, each row told by its outcome."""
    status, verb = request.POST.get("status"), request.POST.get("verb")
    if (status, verb) not in ((TaskStatus.FAILED, "retry"), (TaskStatus.WAITING, "cancel")):
        messages.error(request, _("Nothing was changed: failed tasks can be retried, waiting ones "
                                  "cancelled."))  # fmt: skip
        return redirect("operations")
    kind, error = (request.POST.get(name, "").replace("\0", "") for name in ("kind", "error"))
    tasks, more = tasks_in(status, kind, error)
    if not tasks:
        messages.warning(request, _("Nothing was changed: no task has this error any more."))
    _act(request, verb, tasks)
    if more:
        text = ngettext(
            "%(count)d more has this error: do it again for it.",
            "%(count)d more have this error: do it again for them.",
            more,
        )
        messages.info(request, text % {"count": more})
    return redirect("operations")


@require_safe
@never_cache
@for_operators
def operations_task(request: HttpRequest, pk: int) -> HttpResponse:
    task = get_object_or_404(BackgroundTask.objects.select_related("owner", "team"), pk=pk)
    context = {
        "task": task,
        "passages": life(task),
        "may_retry": may_operate(request.user) and task.status in ("FAILED", "CANCELLED"),
        "may_cancel": may_operate(request.user) and task.is_live,
    }
    template = "operations/_task.html" if request.htmx else "operations/task.html"
    return render(request, template, context)


@require_POST
@for_operators
def operations_verb(request: HttpRequest, pk: int, verb: str) -> HttpResponse:
    task = get_object_or_404(BackgroundTask, pk=pk)
    _act(request, verb, BackgroundTask.objects.filter(pk=task.pk))
    return redirect("operations_task", pk)


def _act(request: HttpRequest, verb: str, tasks) -> None:
    """As the same action in the admin, with its entry in the admin's own history."""
    model_admin = admin.site.get_model_admin(BackgroundTask)
    act = {"retry": verbs.retry, "cancel": verbs.cancel}[verb]
    each_row(model_admin, request, tasks, lambda task: act(task, request.user))


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isascii() and text.isdigit() and len(text) < 9 else None
