"""The states of a task; ARCHITECTURE.md draws the arrows between them."""

from django.db import models
from django.utils.translation import gettext_lazy as _


class TaskStatus(models.TextChoices):
    WAITING = "WAITING", _("waiting")
    RUNNING = "RUNNING", _("running")
    COMPLETED = "COMPLETED", _("completed")
    FAILED = "FAILED", _("failed")  # dead letter: a person may retry it
    CANCELLED = "CANCELLED", _("cancelled")


LIVE = [TaskStatus.WAITING, TaskStatus.RUNNING]
TERMINAL = [TaskStatus.COMPLETED, TaskStatus.FAILED, TaskStatus.CANCELLED]
