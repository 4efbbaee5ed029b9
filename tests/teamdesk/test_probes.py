"""Questions that hang are asked once, and nobody waits long for them."""

import threading
import time

import pytest

from teamdesk import probes


@pytest.fixture
def hanging():
    """A probe whose question hangs until the end of the test, and how often it was asked."""
    go_on, asked_so_far = threading.Event(), []

    def question():
        asked_so_far.append(threading.current_thread())
        assert go_on.wait(60)
        return "at last"

    probe = probes.Probe(question)
    yield probe, asked_so_far, go_on
    go_on.set()


def answer(probe, patience=0.05):
    return probe.ask().answer(time.monotonic() + patience, patience)


@pytest.mark.django_db(transaction=True)
def test_a_question_that_hangs_is_asked_once_however_often_one_asks(hanging, wait_until):
    probe, asked_so_far, go_on = hanging
    with pytest.raises(probes.NoAnswer, match=r"^does not answer$"):
        answer(probe)
    for _ in range(20):
        with pytest.raises(probes.NoAnswer, match="still does not answer"):
            answer(probe)
    assert len(asked_so_far) == 1
    go_on.set()
    wait_until(lambda: not asked_so_far[0].is_alive())
    assert answer(probe, patience=30) == "at last"
    assert len(asked_so_far) == 2


@pytest.mark.django_db(transaction=True)
def test_those_who_ask_at_once_share_one_answer(hanging, wait_until):
    probe, asked_so_far, go_on = hanging
    answers = []
    waiting = [
        threading.Thread(target=lambda: answers.append(answer(probe, patience=30)))
        for _ in range(5)
    ]
    for thread in waiting:
        thread.start()
    wait_until(lambda: asked_so_far)
    go_on.set()
    for thread in waiting:
        thread.join(30)
    assert answers == ["at last"] * 5
