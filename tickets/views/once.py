"""A form that is sent twice does its work once."""

import uuid

from django.contrib.sessions.models import Session
from django.db import transaction

_DONE = "submissions"  # in the session: what each of the latest forms made
_KEPT = 20


def new_submission() -> str:
    """The hidden ``submission`` of a form, new each time the form is shown."""
    return uuid.uuid4().hex


@transaction.atomic
def once(request, make) -> int:
    """``make()`` returns the id of what it made; a repeated submission gets that id again.

    The lock on the session's row makes a double click wait for the first request, and both
    the work and the note of it are one transaction. Without a ``submission`` nothing is noted.
    """
    key = request.POST.get("submission", "")[:40]
    session = (
        Session.objects.select_for_update().filter(pk=request.session.session_key).first()
        if key
        else None
    )
    if session is None:
        return make()
    done = session.get_decoded().get(_DONE, {})
    if key not in done:
        done = dict([*done.items(), (key, make())][-_KEPT:])
        request.session[_DONE] = done
        request.session.save()
    return done[key]
