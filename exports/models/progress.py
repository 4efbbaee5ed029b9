"""How far an export is, in words for people."""

from django.db.models import Exists, OuterRef, QuerySet
from django.db.models.functions import Now
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from tasks import registry
from tasks.models import AttemptOutcome, TaskAttempt, TaskStatus

FIRST_SECONDS = 4  # an estimate from less would jump about
_MINUTE, _HOUR = 60, 3600


def with_progress(exports: QuerySet) -> QuerySet:
    """Adds what ``Progressing`` answers from: the database's time, and whether the last attempt was
    handed back rather than failed."""
    last = TaskAttempt.objects.filter(
        task=OuterRef("task"), run=OuterRef("task__run"), attempt=OuterRef("task__attempt")
    )
    return exports.annotate(
        read_at=Now(), is_handed_back=Exists(last.filter(outcome=AttemptOutcome.RELEASED))
    )


class Progressing:
    """Mixin of Export. Of rows loaded ``with_state``."""

    @property
    def waits_for_turn(self) -> bool:
        """It stepped aside for others, or a worker that shut down handed it back. No failure."""
        return self.task.status == TaskStatus.WAITING and self.is_handed_back

    @property
    def attempt(self) -> int:
        """The number of the attempt; those that were handed back do not count."""
        return self.task.attempt - self._granted

    @property
    def attempts_allowed(self) -> int:
        return self.task.max_attempts - self._granted

    @property
    def _granted(self) -> int:
        return max(self.task.max_attempts - registry.kind(self.task.kind).max_attempts, 0)

    @property
    def is_packed(self) -> bool:
        """All rows are read. What is left, the packing of a workbook, may take a while."""
        task = self.task
        is_running = task.status == TaskStatus.RUNNING
        return (
            is_running and bool(task.progress_total) and task.progress_done >= task.progress_total
        )

    @property
    def seconds_left(self) -> float | None:
        """Until it is written, if it goes on as it went since its turn came; None: too early to
        say."""
        task = self.task
        is_begun = task.status == TaskStatus.RUNNING and self.turn_of == task.execution_id
        if not is_begun or not task.progress_total or not task.progress_done or self.is_packed:
            return None
        seconds = (self.read_at - self.began_at).total_seconds()
        if seconds < FIRST_SECONDS:
            return None
        return seconds * (task.progress_total - task.progress_done) / task.progress_done

    @property
    def time_left(self) -> str:
        """“about 3 minutes left”; empty as long as nobody can say."""
        seconds = self.seconds_left
        if seconds is None:
            return ""
        if seconds < 10:
            return _("a few seconds left")
        if seconds < 1.5 * _MINUTE:
            tens = max(round(seconds / 10), 1) * 10
            text = ngettext("about %(count)d second left", "about %(count)d seconds left", tens)
            return text % {"count": tens}
        if seconds < 1.5 * _HOUR:
            minutes = round(seconds / _MINUTE)
            text = ngettext("about %(count)d minute left", "about %(count)d minutes left", minutes)
            return text % {"count": minutes}
        hours = round(seconds / _HOUR)
        text = ngettext("about %(count)d hour left", "about %(count)d hours left", hours)
        return text % {"count": hours}
