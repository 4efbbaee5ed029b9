from .background_task import BackgroundTask, DedupConflict
from .chore import Chore
from .dispatcher_status import DispatcherStatus
from .task_attempt import AttemptOutcome, TaskAttempt
from .task_status import LIVE, TERMINAL, TaskStatus

__all__ = [
    "LIVE",
    "TERMINAL",
    "AttemptOutcome",
    "BackgroundTask",
    "Chore",
    "DedupConflict",
    "DispatcherStatus",
    "TaskAttempt",
    "TaskStatus",
]
