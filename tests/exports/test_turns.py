"""Fairness: nobody waits behind another person's many exports."""

import random
from collections import deque
from datetime import timedelta

import pytest
from django.db.models import F
from django.db.models.functions import Now

from exports import turns
from exports.models import Export
from tasks.dispatcher import dispatch_once
from tasks.lease import Lease
from tasks.models import BackgroundTask, TaskAttempt, TaskStatus
from tasks.registry import RetryLater
from tests.exports.conftest import aged, reloaded
from tickets.models import User

pytestmark = pytest.mark.django_db(transaction=True)


def asked(person) -> Export:
    return Export.objects.request(person, {}, ["id"])


def begun(export) -> Lease:
    """A worker has it, and its turn has come."""
    lease = Lease.claim(export.pk, export.task.run)
    turns.take(export, lease)
    return lease


def due_again(export) -> Export:
    """Its seconds aside are over."""
    BackgroundTask.objects.filter(pk=export.pk).update(run_at=Now())
    return reloaded(export)


def test_alone_a_persons_exports_run_side_by_side(alice, run):
    first, second = asked(alice), asked(alice)
    begun(first)
    assert run(second).is_ready


def test_a_second_one_steps_aside_for_who_has_none_running(alice, bob, run):
    first, second, bobs = asked(alice), asked(alice), asked(bob)
    lease = begun(first)
    second = run(second)
    assert second.task.status == TaskStatus.WAITING
    assert second.task.run_at > second.task.updated_at
    assert run(bobs).is_ready
    assert run(due_again(second)).is_ready  # nobody else waits, though the first still runs
    lease.release()


def test_stepping_aside_costs_no_attempt(alice, bob, run, monkeypatch):
    first, second, _bobs = asked(alice), asked(alice), asked(bob)
    begun(first)
    for _ in range(3):
        second = due_again(run(second))
    outcomes = TaskAttempt.objects.filter(task=second.pk).values_list("outcome", flat=True)
    assert list(outcomes) == ["released"] * 3
    assert (second.task.attempt, second.task.max_attempts) == (3, 6)
    assert (second.attempt, second.attempts_allowed) == (0, 3)


def test_its_page_says_that_it_waits_for_its_turn_and_no_failure(client, alice, bob, run):
    first, second, _bobs = asked(alice), asked(alice), asked(bob)
    begun(first)
    second = run(second)
    client.force_login(alice)
    page = client.get(f"/exports/{second.pk}/").content.decode()
    assert "Waiting for its turn" in page
    assert "did not succeed" not in page
    assert "Reason" not in page
    answer = client.get(f"/exports/{second.pk}/", headers={"accept": "application/json"}).json()
    assert (answer["status"], answer["error"]) == ("WAITING", None)


def test_a_failed_attempt_is_still_told_as_one(client, alice, run, monkeypatch):
    def broken(*args):
        raise RuntimeError("no room")

    monkeypatch.setattr("exports.jobs.Snapshot.count_by", broken)
    export = run(asked(alice))
    client.force_login(alice)
    page = client.get(f"/exports/{export.pk}/").content.decode()
    assert "Attempt 1 of 3 did not succeed" in page
    assert "no room" in page


def test_it_comes_back_later_each_time(alice, bob, run):
    first, second, _bobs = asked(alice), asked(alice), asked(bob)
    begun(first)
    waits = []
    for _ in range(8):
        second = run(second)
        waits.append(round((second.task.run_at - second.task.updated_at).total_seconds()))
        second = due_again(second)
    assert waits[0] == turns.SHORTEST
    assert waits == sorted(waits)
    assert max(waits) <= turns.LONGEST


def test_it_goes_first_after_twenty_steps_aside_whoever_waits(alice, bob, run):
    first, second, _bobs = asked(alice), asked(alice), asked(bob)
    begun(first)
    for _ in range(turns.MOST_STEPS):
        second = due_again(run(second))
        assert second.task.status == TaskStatus.WAITING
    assert run(second).is_ready


def test_one_process_serves_people_in_turns(alice, bob, vera, run):
    """Alice's ten were asked for first; nobody has two running ever."""
    hers = [asked(alice) for _ in range(10)]
    others = [asked(bob), asked(vera)]
    assert run(hers[0]).is_ready
    assert run(hers[1]).task.status == TaskStatus.WAITING
    assert [run(export).is_ready for export in others] == [True, True]
    assert run(due_again(hers[1])).is_ready


def test_who_asks_after_one_was_served_does_not_overtake_them(alice, bob, run):
    """Or a stream of new people would keep alice waiting for ever."""
    first, second = asked(alice), asked(alice)
    run(first)
    asked(bob)
    assert run(second).is_ready


def test_two_people_with_many_do_not_step_aside_for_each_other(alice, bob, run):
    exports = [asked(person) for _ in range(3) for person in (alice, bob)]
    for export in exports:
        assert run(export).is_ready


def test_what_is_not_due_lets_others_go(alice, bob, run):
    first, second, bobs = asked(alice), asked(alice), asked(bob)
    begun(first)
    aged(bobs, run_at=timedelta(hours=1))
    assert run(second).is_ready


def test_two_claimed_in_one_moment_do_not_both_step_aside(alice, bob, actor):
    """The second judges while the first has not committed its turn: it waits for that."""
    exports = [asked(alice), asked(alice)]
    asked(bob)
    leases = [Lease.claim(export.pk, 0) for export in exports]
    first, second = actor("first"), actor("second")
    first.begin()
    first.do(turns.take, exports[0], leases[0])
    late = second.start(turns.take, exports[1], leases[1])
    second.wait_until_blocked()
    first.commit()
    with pytest.raises(RetryLater):
        late.result(timeout=30)
    assert reloaded(exports[0]).turn_of == leases[0].execution_id


def test_an_execution_that_lost_its_lease_takes_no_turn(alice):
    export = asked(alice)
    lost = Lease.claim(export.pk, 0)
    lost.release()
    turns.take(export, lost)
    assert reloaded(export).turn_of is None


def people(support, count: int) -> list[User]:
    found = [User.objects.create(username=f"person{number}") for number in range(count)]
    for person in found:
        support.memberships.create(user=person, role="agent")
    return found


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("processes_wide", [1, 2, 3])
def test_in_any_order_somebody_is_served_and_nobody_twice_before_another(
    support, seed, processes_wide
):
    """A queue that is first in, first out, before so many processes. Each step one process ends."""
    chance = random.Random(seed)
    wanted = [person for person in people(support, 5) for _ in range(chance.choice([1, 1, 2, 5]))]
    chance.shuffle(wanted)
    queue = deque(asked(person) for person in wanted)
    running: list[tuple[Export, Lease]] = []
    served = []
    while queue or running:
        passed_over = 0
        while queue and len(running) < processes_wide:
            export = queue.popleft()
            lease = Lease.claim(export.pk, 0)
            try:
                turns.take(export, lease)
            except RetryLater as later:
                lease.fail_attempt(later)
                BackgroundTask.objects.filter(pk=export.pk).update(run_at=F("created_at"))
                queue.append(export)
                passed_over += 1
                if passed_over == len(queue):
                    assert running, "all step aside for each other"
                    break
                continue
            passed_over = 0
            running.append((export, lease))
            served.append(export.requester_id)
        running.pop(chance.randrange(len(running)))[1].complete()
    assert sorted(served) == sorted(person.pk for person in wanted)
    everybody = set(served)
    first_round = {person: served.index(person) for person in everybody}
    for person, place in first_round.items():
        before = served[:place]
        # Of each other person at most what the free processes took before anybody else could.
        assert all(before.count(other) <= 1 for other in everybody - {person}), (person, served)


@pytest.mark.processes
def test_fifty_exports_of_many_people_none_behind_anothers_ten(
    alice, support, ticket, processes, wait_until
):
    """Real workers, two processes wide. Alice's ten were there first."""
    ticket()
    hers = [asked(alice) for _ in range(10)]
    others = [asked(person) for person in people(support, 40)]
    dispatch_once()
    processes.worker("long")
    processes.beat()
    done = BackgroundTask.objects.filter(kind="EXPORT", status=TaskStatus.COMPLETED)
    wait_until(lambda: done.count() == 50, "all fifty are made", 120)
    last_of_others = max(reloaded(export).began_at for export in others)
    before = [export for export in hers if reloaded(export).began_at < last_of_others]
    assert len(before) == 1
