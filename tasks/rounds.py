"""Rounds one after another, for processes that do nothing else: beat, ``dispatch_once --loop``."""

import logging

from django.db import close_old_connections

from tasks.dispatcher import Report, RoundFault, dispatch_once
from tasks.errors import describe
from tasks.round_lock import RoundInProgress, RoundLock

logger = logging.getLogger(__name__)

SKIPPED = "skipped"


def attempt_round(lock: RoundLock, limit: int | None = None) -> tuple[Report, str | None]:
    """One round that raises nothing: a fault is logged, and the next round tries again. Returns
    what it did and its fault; SKIPPED if another process is running one."""
    close_old_connections()
    try:
        return dispatch_once(limit=limit, lock=lock), None
    except RoundInProgress:
        logger.debug("Another process is running a round")
        return Report(), SKIPPED
    except RoundFault as fault:
        logger.error("Round incomplete: %s", fault)
        return fault.report, str(fault)
    except Exception as error:  # whatever it was, its process lives to try the next one
        logger.exception("Round failed")
        return Report(), describe(error)
