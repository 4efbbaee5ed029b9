"""The dashboard: what the tickets of a team, or of all of one's teams, add up to."""

from django.contrib.auth.decorators import login_required
from django.shortcuts import render
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext, pgettext
from django.views.decorators.http import require_safe

from tasks.charts import Chart, Layout, Series, bar_chart
from tickets.dashboard.figures import Dashboard, Day
from tickets.dashboard.period import LENGTHS, Period
from tickets.models import Team


@require_safe
@login_required
def dashboard(request):
    teams = list(Team.objects.visible_to(request.user).order_by("name"))
    asked = request.GET.get("team", "")
    team = next((team for team in teams if str(team.pk) == asked), None)
    period = Period.of(request.GET.get("days", ""))
    shown = Dashboard(request.user, team, period)
    named, ages = shown.now()
    days = shown.days()
    first_response, first_response_lengths = shown.first_responses()
    resolution, resolution_lengths = shown.resolutions()
    context = {
        "teams": teams,
        "team": team,
        "is_unknown_team": bool(asked) and team is None,
        "lengths": LENGTHS,
        "period": period,
        "now": named,
        "oldest_share": max((figure.number for _bounds, figure in ages), default=0),
        "ages": [(_age(*bounds), figure) for bounds, figure in ages],
        "days": [day for day in reversed(days) if day.created.number or day.resolved.number],
        "chart": _chart(days),
        "times": [
            (_("First response"), first_response, first_response_lengths),
            (_("Resolution"), resolution, resolution_lengths),
        ],
        "agents": shown.agents(),
        "tags": shown.tags(),
    }
    return render(request, "tickets/dashboard.html", context)


def _age(low: int, high: int | None) -> str:
    if high == 0:
        return _("today")
    if high is None:
        return ngettext("%(count)d day or more", "%(count)d days or more", low) % {"count": low}
    return _("%(low)d to %(high)d days") % {"low": low, "high": high}


def _chart(days: list[Day]) -> Chart:
    labels = [date_format(day.day, "MONTH_DAY_FORMAT") for day in days]
    created = sum(day.created.number for day in days)
    resolved = sum(day.resolved.number for day in days)
    return bar_chart(
        "days",
        _("Created and resolved per day"),
        _("Created: %(created)d, resolved: %(resolved)d")
        % {"created": created, "resolved": resolved},
        [
            Series(
                "created", pgettext("number of tickets", "created"), lambda day: day.created.number
            ),
            Series(
                "resolved",
                pgettext("number of tickets", "resolved"),
                lambda day: day.resolved.number,
            ),
        ],
        days,
        labels=labels,
        ticks=(labels[0], labels[len(labels) // 2], _("today")),
        layout=Layout.BESIDE,
        shown=lambda value: f"{value:g}",
    )
