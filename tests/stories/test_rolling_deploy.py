"""A new version is rolled out while people work: every worker and beat in turn gets SIGTERM."""

import sys
import threading

import pytest

from bench.soaking import cast
from bench.soaking.exports import ExportLoad
from bench.soaking.tickets import TicketLoad
from tasks.models import BackgroundTask, TaskAttempt, TaskStatus

pytestmark = [
    pytest.mark.processes,
    pytest.mark.django_db(transaction=True),
    pytest.mark.timeout(300),
]

enqueue = BackgroundTask.objects.enqueue


def beat_of(processes):
    """It must know the kinds of the tests, or it takes those of the long queue for short ones."""
    celery = "import tests.tasks.kinds; from celery.__main__ import main; main()"
    command = (sys.executable, "-c", celery, "-A", "teamdesk", "beat", "--pidfile=")
    return processes.start("beat", *command)


@pytest.fixture
def people_at_work(processes):
    """Two people at the real web who open, move and close tickets and export them, until
    ``stop()``; it returns what was not done as accepted."""
    _, address = processes.web(TEAMDESK_FAST_PATH="True")
    company = cast.set_up(archived=300)
    tickets = TicketLoad("tickets", address, company, pause=0.3)
    exports = ExportLoad("exports", address, company, tickets, pause=0.6)
    over = threading.Event()
    threads = [threading.Thread(target=load.run, args=[over]) for load in (tickets, exports)]
    for thread in threads:
        thread.start()

    class People:
        accepted = property(lambda self: min(tickets.accepted, exports.accepted))

        def stop(self):
            over.set()
            for thread in threads:
                thread.join()

        def breaches(self):
            assert tickets.unknown == exports.unknown == 0  # the web was not restarted
            return tickets.breaches() + exports.breaches()

    people = People()
    yield people
    people.stop()


def test_a_rolling_restart_under_load_loses_and_doubles_nothing(
    processes,
    people_at_work,
    notes,
    wait_until,
):
    workers = {queue: processes.worker(queue) for queue in ("short", "long")}
    beats = [beat_of(processes), beat_of(processes)]
    ours = []

    for queue, kind in (("short", "STAYS"), ("long", "LONG_STAYS")):
        accepted = people_at_work.accepted
        wait_until(lambda: people_at_work.accepted >= accepted + 2, "work on the new version")  # noqa: B023
        held = enqueue(kind)
        ours += [held, *(enqueue("NOTE") for _ in range(20))]
        wait_until(lambda: held.attempts.exists(), "it runs")  # noqa: B023
        old, workers[queue] = workers[queue], processes.worker(queue)
        old.stop()
        # Handed back before the process ended: nobody has to wait for the lease, which is 120 s.
        name = old.popen.args[old.popen.args.index("-n") + 1]
        mine = TaskAttempt.objects.filter(worker=name)
        assert mine.exists()
        assert not mine.filter(finished_at=None).exists()
        first = held.attempts.get(attempt=1)
        assert (first.worker, first.outcome) == (name, "released"), old.output

    for old in beats:
        beat_of(processes)
        ours += [enqueue("NOTE") for _ in range(20)]
        assert old.stop() == 0

    people_at_work.stop()
    wait_until(lambda: not BackgroundTask.objects.live().exists(), "all of it is done", 90)
    assert people_at_work.breaches() == []
    assert all(notes(task) == 1 for task in ours)
    # No attempt was charged: neither a lease ran out nor did an attempt fail.
    outcomes = set(TaskAttempt.objects.values_list("outcome", flat=True))
    assert outcomes <= {"completed", "released", "cancelled"}
    for task in BackgroundTask.objects.filter(status=TaskStatus.COMPLETED):
        released = task.attempts.filter(run=task.run, outcome="released").count()
        assert task.attempt == 1 + released
