"""Choosing the columns of the ticket list."""

from django.http import HttpRequest, HttpResponse, QueryDict
from django.shortcuts import redirect
from django.urls import reverse

from tickets.access import posted_by_person
from tickets.columns import known_fields
from tickets.models import ListSettings


@posted_by_person
def list_columns(request: HttpRequest) -> HttpResponse:
    """Remembered for the person's lists; of a saved view, part of the address until it is saved."""
    back = QueryDict(request.POST.get("list", ""), mutable=True)
    back.pop("columns", None)
    usual = "usual" in request.POST
    columns = [] if usual else known_fields(request.POST.getlist("columns"))
    if "view" not in back:
        ListSettings.objects.remember_columns(request.user, columns)
    elif columns:
        back.setlist("columns", columns)
    address = reverse("ticket_list")
    return redirect(f"{address}?{back.urlencode()}" if back else address)
