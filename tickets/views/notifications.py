"""What a person was told, and the bell that says something is new."""

from django.contrib.auth.decorators import login_required
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.http import url_has_allowed_host_and_scheme
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_safe

from tickets import sentences
from tickets.access import own_notification_or_404, posted_by_person
from tickets.context import Bell
from tickets.models import Notification, NotificationKind

PER_PAGE = 25
LOOKS = {
    NotificationKind.REMINDER: ("calendar-due", "chip-amber"),
    NotificationKind.ASSIGNED: ("user-check", "chip-blue"),
    NotificationKind.COMMENTED: ("message", "chip-violet"),
    NotificationKind.EXPORT_READY: ("file-export", "chip-green"),
    NotificationKind.EXPORT_PAUSED: ("alert-triangle", "chip-amber"),
}


@require_safe
@login_required
def notification_list(request):
    unread_only = request.GET.get("unread") == "1"
    notifications = Notification.objects.of(request.user).order_by("-created_at", "-id")
    if unread_only:
        notifications = notifications.unread()
    page = Paginator(notifications, PER_PAGE).get_page(request.GET.get("page"))
    for notice in page:
        notice.sentence = sentences.of_notification(notice)
        notice.icon, notice.tone = LOOKS.get(notice.kind, ("bell", "chip-neutral"))
    query = "unread=1" if unread_only else ""
    return render(
        request,
        "notifications/list.html",
        {"page": page, "unread_only": unread_only, "query": query},
    )


@require_safe
@login_required
@never_cache
def notification_badge(request):
    """The bell, for a page that polls; 204 when it already shows the latest."""
    known, bell = request.GET.get("mark", ""), Bell.of(request.user)
    if known == bell.mark:
        return HttpResponse(status=204)
    page = {"bell": bell, "announcement": bell.announcement_since(known)}
    return render(request, "notifications/_bell.html", page)


@posted_by_person
def notification_open(request, pk):
    """Reading it is opening it: marks it read and goes to what it is about."""
    notice = own_notification_or_404(request.user, pk)
    notice.mark_read()
    return redirect(_target_of(notice, request))


@posted_by_person
def notification_read(request, pk):
    own_notification_or_404(request.user, pk).mark_read()
    return redirect(_next_of(request))


@posted_by_person
def notification_read_all(request):
    Notification.objects.of(request.user).mark_read()
    return redirect("notification_list")


def _target_of(notice, request) -> str:
    if notice.url and url_has_allowed_host_and_scheme(notice.url, {request.get_host()}):
        return notice.url
    if notice.ticket_id:
        return reverse("ticket_detail", args=[notice.ticket_id])
    return reverse("notification_list")


def _next_of(request) -> str:
    url = request.POST.get("next", "")
    if url_has_allowed_host_and_scheme(url, {request.get_host()}):
        return url
    return reverse("notification_list")
