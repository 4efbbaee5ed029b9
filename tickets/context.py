"""What every page shows."""

from dataclasses import dataclass

from django.utils.functional import SimpleLazyObject

from tickets import sentences
from tickets.models import Notification, Team

COUNTED = 100  # more unread than this are "99+"


@dataclass(frozen=True)
class Bell:
    """The bell in the top bar. ``mark`` changes when something new arrived or was read."""

    count: int
    mark: str
    latest: Notification | None

    @classmethod
    def of(cls, user) -> "Bell":
        """One query on the index of unread notifications."""
        unread = list(Notification.objects.of(user).unread().order_by("-id")[:COUNTED])
        latest = unread[0] if unread else None
        return cls(len(unread), f"{len(unread)}-{latest.pk if latest else 0}", latest)

    def announcement_since(self, mark: str) -> str:
        """What to say to a page that last showed ``mark``: the newest, if it is newer."""
        known = mark.rpartition("-")[2]
        if self.latest is None or not known.isdecimal() or self.latest.pk <= int(known):
            return ""
        return sentences.of_notification(self.latest)


def frame(request):
    """``notification_bell`` and ``can_open_tickets`` of the frame around every page: looked up only
    where they are shown."""
    user = getattr(request, "user", None)
    if user is None or not user.is_authenticated:
        return {}
    return {
        "notification_bell": SimpleLazyObject(lambda: Bell.of(user)),
        "can_open_tickets": SimpleLazyObject(lambda: Team.objects.workable_by(user).exists()),
    }
