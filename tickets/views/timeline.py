"""A ticket's comments and changes in the order they happened."""

from tickets.models import EventKind

_MARKS = {
    "status": "circle-dot",
    "priority": "flag",
    "assignee": "user-check",
    "team": "users",
    "due_at": "calendar-due",
    "tags": "tag",
}
_LONG = {"description"}  # told as "changed", with both texts to unfold


def timeline_of(ticket) -> list[dict]:
    """Two queries. An entry has ``at`` and either ``comment`` or ``events``: what one person
    changed at one time, told together."""
    entries = [
        {"at": comment.created_at, "comment": comment}
        for comment in ticket.comments.select_related("author")
    ]
    # A comment's event repeats the comment.
    events = ticket.events.exclude(kind=EventKind.COMMENTED).select_related("actor")
    together: dict = {}
    for event in events.order_by("at", "id"):
        event.is_long = event.field in _LONG
        key = (event.at, event.kind, event.actor_id, event.reason)
        together.setdefault(key, []).append(event)
    entries += [_entry(group) for group in together.values()]
    return sorted(entries, key=lambda entry: entry["at"])


def _entry(events) -> dict:
    first = events[0]
    mark = "edit" if len(events) > 1 else _MARKS.get(first.field, "edit")
    if first.kind != EventKind.CHANGED:
        mark = "bell" if first.kind == EventKind.REMINDED else "plus"
    return {"at": first.at, "events": events, "first": first, "mark": mark}
