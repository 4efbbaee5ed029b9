"""What every page shows."""

from django.utils.functional import SimpleLazyObject

from tickets.models import Notification


def unread_notifications(request):
    """``unread_notifications``: how many, counted only if the template asks."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {}
    return {
        "unread_notifications": SimpleLazyObject(
            lambda: Notification.objects.of(user).unread().count()
        )
    }
