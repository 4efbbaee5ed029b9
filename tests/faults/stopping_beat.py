"""Beat, with a place where it stops itself once, as SIGSTOP at the worst moment would.

``python -m tests.faults.stopping_beat MODULE FUNCTION``
"""

import importlib
import os
import signal
import sys


def stop_before(module, name: str) -> None:
    original = getattr(module, name)

    def stopped_first(*args, **kwargs):
        setattr(module, name, original)
        os.kill(os.getpid(), signal.SIGSTOP)
        return original(*args, **kwargs)

    setattr(module, name, stopped_first)


if __name__ == "__main__":
    from teamdesk.celery import app

    app.loader.import_default_modules()  # Django is ready from here on
    from tasks import round_lock

    round_lock.LOCK_IDLE_LIMIT = "1s"
    stop_before(importlib.import_module(sys.argv[1]), sys.argv[2])
    app.start(["beat", "--pidfile=", "-l", "INFO"])
