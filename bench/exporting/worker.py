"""A process that does what it is asked, as a pool process of Celery's worker would.

``python -m bench.exporting.worker``, with the settings of a helpdesk in its environment.
"""

import django
from celery import signals

from bench.processes import answer


def main() -> None:
    django.setup()
    # Limits of sessions and of waiting, as in every process of a worker.
    signals.worker_process_init.send(sender=None)
    from bench.exporting import ours, peers, tickets

    verbs = {name: verb for each in (ours, peers, tickets) for name, verb in vars(each).items()}
    answer(verbs.__getitem__)


if __name__ == "__main__":
    main()
