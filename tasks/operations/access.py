"""The door to the operations page: staff who may see the ledger."""

import functools

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.urls import reverse
from django.utils.translation import gettext as _


def for_operators(view):
    """Decorator: answers staff with ``tasks.view_backgroundtask``; POST needs ``may_operate``."""

    @functools.wraps(view)
    def open_door(request, *args, **kwargs):
        user = request.user
        if not user.is_authenticated:
            page = request.get_full_path() if request.method == "GET" else reverse("operations")
            return redirect_to_login(page)
        if not (user.is_staff and user.has_perm("tasks.view_backgroundtask")):
            raise PermissionDenied(_("This page is for staff who may see background tasks."))
        if request.method == "POST" and not may_operate(user):
            raise PermissionDenied(_("You may see background tasks but not change them."))
        return view(request, *args, **kwargs)

    return open_door


def may_operate(user) -> bool:
    """May retry and cancel."""
    return user.is_staff and user.has_perm("tasks.change_backgroundtask")
