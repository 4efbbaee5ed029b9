"""Which web request this is about: carried from the request through the ledger into a task's logs.

A library of this (django-guid) accepts as an incoming id whatever ``uuid.UUID`` can read, which has
no limit of length, and nothing but UUIDs; proxies send both others and longer ones.
"""

import re
import uuid
from contextvars import ContextVar

LIMIT = 64  # characters; BackgroundTask.request_id
# What is safe in a log line, a header and a column as it is.
_SAFE = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._:=+-]{{7,{LIMIT - 1}}}")

# Of the request that is answered now, or that enqueued the task that runs now; empty elsewhere.
request_id: ContextVar[str] = ContextVar("request_id", default="")


def accepted_or_new(offered: str) -> str:
    """The id that a client or proxy offers, if it is safe, or one made here."""
    return offered if _SAFE.fullmatch(offered) else uuid.uuid4().hex
