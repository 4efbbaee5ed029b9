"""Retry and cancel of one task, each with the sentence that tells what became of it."""

from django.contrib import messages
from django.utils.translation import gettext as _

from tasks.models import BackgroundTask, DedupConflict, TaskStatus

from .rows import Outcome


def retry(task: BackgroundTask, by) -> Outcome:
    try:
        if task.retry(by=by):
            return messages.SUCCESS, _("To be run again")
    except DedupConflict:
        text = _("Not retried, another live task holds the dedup key “%(key)s”")
        return messages.ERROR, text % {"key": task.dedup_key}
    if task.status in (TaskStatus.FAILED, TaskStatus.CANCELLED):
        return messages.WARNING, _("Not retried, someone else was faster")
    text = _("Not retried, it is %(status)s")
    return messages.WARNING, text % {"status": task.get_status_display()}


def cancel(task: BackgroundTask, by) -> Outcome:
    if task.cancel(by=by):
        return messages.SUCCESS, _("Cancelled")
    if task.is_live:
        return messages.WARNING, _("Not cancelled, it ended in the meantime")
    text = _("Not cancelled, it is already %(status)s")
    return messages.WARNING, text % {"status": task.get_status_display()}
