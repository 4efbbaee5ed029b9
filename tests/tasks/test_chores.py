"""Periodic chores: one task per time slot, whoever inserts it and whatever became of the last."""

from datetime import timedelta

import pytest
from django.db import connection, transaction
from django.db.models import F

from tasks import registry
from tasks.dispatcher import RoundFault, dispatch_once
from tasks.models import BackgroundTask, Chore
from tasks.worker import run_job
from tests import services

pytestmark = pytest.mark.django_db(transaction=True)

DAY = timedelta(days=1)
insert_due = Chore.objects.insert_due


@pytest.fixture(autouse=True)
def sweeping(monkeypatch, settings):
    """The only chore that anybody knows: SWEEP, once a day."""
    settings.TEAMDESK_CHORES = True
    sweep = registry.Kind("SWEEP", lambda task, lease: None, every=DAY)
    monkeypatch.setattr(registry, "_kinds", {"SWEEP": sweep})


def swept():
    return BackgroundTask.objects.filter(kind="SWEEP").order_by("id")


def days_pass(days):
    """Seen from the table: its last slot lies that much further back."""
    Chore.objects.update(slot_at=F("slot_at") - days * DAY)


def test_the_first_round_inserts_its_task_in_this_very_round():
    report = dispatch_once()
    assert report.enqueued == 1
    task = swept().get()
    chore = Chore.objects.get()
    assert (chore.kind, chore.task_id) == ("SWEEP", task.pk)
    assert task.dedup_key == f"SWEEP:{chore.slot_at.isoformat()}"


def test_a_slot_is_the_databases_time_rounded_down():
    insert_due()
    with connection.cursor() as cursor:
        cursor.execute("SELECT date_trunc('day', clock_timestamp() AT TIME ZONE 'UTC')")
        midnight = cursor.fetchone()[0]
    assert Chore.objects.get().slot_at.replace(tzinfo=None) == midnight


def test_a_slot_has_one_task_also_when_that_has_ended():
    assert insert_due() == 1
    run_job(swept().get().pk, 0)
    assert insert_due() == 0
    swept().delete()  # and pruned
    assert insert_due() == 0
    assert not swept().exists()


def test_the_next_slot_has_a_task_of_its_own():
    insert_due()
    run_job(swept().get().pk, 0)
    days_pass(1)
    assert insert_due() == 1
    assert swept().count() == 2


def test_a_week_without_rounds_makes_one_late_task_and_no_burst():
    insert_due()
    run_job(swept().get().pk, 0)
    days_pass(7)
    assert [insert_due() for _ in range(3)] == [1, 0, 0]


def test_a_week_without_workers_piles_nothing_up():
    for _ in range(7):
        insert_due()
        days_pass(1)
    waiting = swept().get()
    run_job(waiting.pk, 0)
    assert insert_due() == 1


def test_a_failed_task_does_not_stop_its_chore():
    insert_due()
    swept().update(status="FAILED", finished_at=F("created_at"))
    days_pass(1)
    assert insert_due() == 1


def test_a_clock_that_was_wrong_stops_nothing():
    insert_due()
    run_job(swept().get().pk, 0)
    days_pass(-400)
    assert insert_due() == 1
    assert insert_due() == 0


def test_nothing_of_a_rolled_back_slot_is_left():
    with pytest.raises(RuntimeError), transaction.atomic():
        insert_due()
        raise RuntimeError
    assert not swept().exists() and not Chore.objects.exists()
    assert insert_due() == 1


def test_a_chore_that_nobody_knows_is_left_alone():
    yesterday = Chore.objects.create(kind="GONE", slot_at="2026-01-01T00:00Z")
    insert_due()
    yesterday.refresh_from_db()
    assert yesterday.slot_at.year == 2026 and yesterday.slot_at.month == 1
    assert not BackgroundTask.objects.filter(kind="GONE").exists()


def test_two_that_come_at_once_insert_one(actor):
    """The second comes while the first has not committed: it leaves the slot alone, and does not
    wait for a beat that may stand still."""
    insert_due()
    run_job(swept().get().pk, 0)
    days_pass(1)
    anna, ben = actor("anna"), actor("ben")
    anna.begin()
    assert anna.do(insert_due) == 1
    assert ben.do(insert_due) == 0
    anna.commit()
    assert ben.do(insert_due) == 0
    assert swept().count() == 2


def test_what_the_first_rolls_back_the_second_inserts(actor):
    insert_due()
    run_job(swept().get().pk, 0)
    days_pass(1)
    anna, ben = actor("anna"), actor("ben")
    anna.begin()
    assert anna.do(insert_due) == 1
    anna.do(lambda: transaction.set_rollback(True))
    assert ben.do(insert_due) == 0
    anna.commit()
    assert ben.do(insert_due) == 1
    assert swept().count() == 2


def test_the_very_first_slot_is_taken_once_too(actor):
    anna, ben = actor("anna"), actor("ben")
    anna.begin()
    assert anna.do(insert_due) == 1
    late = ben.start(insert_due)
    ben.wait_until_blocked()
    anna.commit()
    assert late.result(30) == 0
    assert swept().count() == 1


def test_it_is_inserted_while_redis_is_down(settings):
    settings.REDIS_URL = f"unix://{services.FOLDER}/nobody.sock"
    with pytest.raises(RoundFault, match="Redis"):
        dispatch_once()
    assert swept().count() == 1


def test_one_that_cannot_be_inserted_stops_neither_the_others_nor_the_round(monkeypatch):
    broken = registry.Kind("BROKEN", lambda task, lease: None, every=DAY)
    monkeypatch.setitem(registry._kinds, "BROKEN", broken)
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS "
            "$$ BEGIN RAISE EXCEPTION 'no room'; END $$;"
            "CREATE TRIGGER refuse BEFORE INSERT ON tasks_chore FOR EACH ROW "
            "WHEN (NEW.kind = 'BROKEN') EXECUTE FUNCTION refuse()"
        )
    try:
        with pytest.raises(RoundFault, match=r"chores: .*no room") as fault:
            dispatch_once()
    finally:
        with connection.cursor() as cursor:
            cursor.execute("DROP FUNCTION refuse CASCADE")
    assert fault.value.report.enqueued == 1
    assert swept().count() == 1


def test_a_quiet_round_asks_once_and_writes_nothing(django_assert_num_queries):
    insert_due()
    with django_assert_num_queries(1):
        insert_due()


def test_a_setting_turns_them_off(settings):
    settings.TEAMDESK_CHORES = False
    dispatch_once()
    assert not BackgroundTask.objects.exists()


@pytest.mark.parametrize("every", [timedelta(0), timedelta(milliseconds=500), -DAY])
def test_a_rhythm_without_a_length_is_refused(every):
    with pytest.raises(ValueError, match="shorter than a second"):
        registry.Kind("HECTIC", lambda task, lease: None, every=every)
