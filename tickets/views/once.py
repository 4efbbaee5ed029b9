"""A form that is sent twice does its work once."""

import hashlib
import uuid
from urllib.parse import urlencode

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

    Repeated means that it says the same: a form that the browser's Back button or a lost answer
    left on the screen and that now says something else is new.

    The lock on the session's row makes a double click wait for the first request, and both
    the work and the note of it are one transaction. Without a ``submission`` nothing is noted.
    """
    key = _what_it_says(request)
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
        request.session.modified = False  # saved again after the lock, it could undo another's note
    return done[key]


def _what_it_says(request) -> str:
    """A short name of the submission and all its fields; empty if it names no submission."""
    fields = dict(request.POST.lists())
    fields.pop("csrfmiddlewaretoken", None)
    if not fields.get("submission", [""])[-1]:
        return ""
    said = urlencode({"": request.path, **fields}, doseq=True)
    return hashlib.sha256(said.encode()).hexdigest()[:40]
