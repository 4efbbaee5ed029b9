"""What happens when a scheduled export's time has come."""

import uuid
from http import HTTPStatus
from zoneinfo import ZoneInfo

from django.core.exceptions import ValidationError
from django.db import transaction
from django.urls import reverse
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from tasks.clock import database_now
from tasks.models import BackgroundTask, TaskStatus
from tickets.filters import TicketFilter
from tickets.models import Notification, NotificationKind, Team

from .export import Export
from .limiting import LimitReached

SCHEDULED_EXPORT = "SCHEDULED_EXPORT"
DEDUP_PREFIX = "scheduled-export:"


class Running:
    """Capability of ScheduledExport: its exports, its tasks, and its pause when it may not run."""

    # Questions

    def reason_not_to_run(self) -> str:
        """Why its owner may not have this export now, in their language, or nothing. Seeing fewer
        teams than before is no reason: the file has what its owner may see."""
        with translation.override(self.owner.language or self.language):
            if not self.owner.is_active:
                return _("The account of its owner is not active any more.")
            if not Team.objects.visible_to(self.owner).exists():
                return _("Its owner does not belong to any team.")
            with timezone.override(ZoneInfo(self.filters_zone)):
                complaints = TicketFilter(self.filters, self.owner).complaints()
            if complaints:
                return _("The filters do not fit any more: %(reasons)s") % {
                    "reasons": " ".join(complaints)
                }
        return ""

    # Verbs

    @transaction.atomic
    def run_now(self, by, key: uuid.UUID | None = None) -> Export:
        """Ask for the export once more, beside the schedule. ``key``: as ``Export.objects.request``
        takes it.

        Raises:
            ValidationError: why not.
            LimitReached: what to do instead.
            ScheduledExport.DoesNotExist: it was deleted meanwhile.
        """
        self._lock()
        if reason := self.reason_not_to_run():
            raise ValidationError(reason)
        self.last_export = self._request(key)
        self.save(update_fields=["last_export"])
        return self.last_export

    def run(self, revision: int, *, may_wait: bool = False) -> Export | None:
        """Its time has come: ask for the export and have the next time's task made. The caller
        holds the row's lock, and its transaction is that of the task.

        Nothing happens when the row is not at ``revision`` any more: it ran, or was changed or
        paused. Late by several times it still makes one export. Where there is a reason not to
        run, it is paused instead and its owner told. Returns the export, if this call made one.

        Raises:
            LimitReached: one that ends by itself, if it ``may_wait`` for that.
        """
        if revision != self.revision:
            return None
        reason = self.reason_not_to_run()
        if not reason:
            try:
                self.last_export = self._request()
            except LimitReached as limit:
                if may_wait and limit.status == HTTPStatus.TOO_MANY_REQUESTS:
                    raise
                reason = str(limit)
            except ValidationError as error:  # columns that are no more
                reason = " ".join(error.messages)
        if reason:
            self._stop_and_tell(reason)
            return None
        # The later of both: the database's clock may have been set back since.
        self.next_run_at = self.next_after(max(self.next_run_at, database_now()))
        self._begin_revision()
        self.save()
        self._enqueue()
        return self.last_export

    @transaction.atomic
    def pause_if_stranded(self) -> bool:
        """Its task failed for good or was cancelled by staff: rather than stand still in silence it
        is paused, and its owner told. True if this call did it.

        Raises ScheduledExport.DoesNotExist if it was deleted meanwhile.
        """
        self._lock()
        if not type(self).objects.stranded().filter(pk=self.pk).exists():
            return False
        self._stop_and_tell(self._why_stranded())
        return True

    def _why_stranded(self) -> str:
        task = BackgroundTask.objects.filter(owner=self.owner_id, dedup_key=self._dedup_key).last()
        with translation.override(self.owner.language or self.language):
            if task is None or task.status == TaskStatus.CANCELLED:
                return _("Its next run was cancelled. Resume it to have it run again.")
            reason = task.last_error.partition("\n")[0]
            return _("Its last run failed: %(reason)s") % {"reason": reason}

    def _request(self, key: uuid.UUID | None = None) -> Export:
        """Raises ValidationError or LimitReached."""
        with translation.override(self.owner.language or self.language):
            return Export.objects.request(
                self.owner,
                self.filters,
                self.columns,
                key,
                row_kind=self.row_kind,
                file_format=self.file_format,
                delimiter=self.delimiter,
                time_zone=self.time_zone,
                filters_zone=self.filters_zone,
            )

    def _stop(self, reason: str) -> None:
        self.next_run_at, self.paused_at, self.pause_reason = None, database_now(), reason
        self._begin_revision()
        self.save()

    def _stop_and_tell(self, reason: str) -> None:
        self._stop(reason)
        Notification.objects.notify(
            [self.owner],
            kind=NotificationKind.EXPORT_PAUSED,
            cause=f"export_paused:{self.pk}:{self.revision}",
            text=self.name,
            excerpt=self.pause_reason,
            url=f"{reverse('export_schedule_list')}#schedule-{self.pk}",
        )

    # The row and its task

    def _lock(self) -> None:
        """As it is now, and nobody changes it before the end of the transaction. The row first,
        then those of the ledger: as in the task's effect."""
        self.refresh_from_db(from_queryset=type(self).objects.select_for_update())

    def _begin_revision(self) -> None:
        self.revision += 1

    def _enqueue(self) -> None:
        BackgroundTask.objects.enqueue(
            SCHEDULED_EXPORT,
            payload={"schedule": self.pk, "revision": self.revision},
            run_at=self.next_run_at,
            owner=self.owner_id,
            dedup_key=self._dedup_key,
        )

    def _cancel_waiting(self, by, reason: str) -> None:
        waiting = BackgroundTask.objects.waiting().filter(dedup_key=self._dedup_key)
        waiting.cancel(by=by, reason=reason)

    @property
    def _dedup_key(self) -> str:
        """One for each time it runs."""
        return f"{DEDUP_PREFIX}{self.pk}:{self.revision}"
