"""What the launcher does with a process that ends, and with what is left of an earlier launcher."""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from teamdesk.embedded import ServiceError
from teamdesk.processes import MARK, Console, Keeper, Process, end, left_behind


class Heard(Console):
    def __init__(self):
        self.lines = []

    def say(self, text, name=""):
        self.lines += [f"{name}: {line}" if name else line for line in text.splitlines()]


class Fragile:
    """Something that a test ends whenever it likes."""

    name = "fragile"
    end = "exit status 3"

    def __init__(self):
        self.starts = 0
        self.running = False
        self.trouble = None

    def start(self):
        self.starts += 1
        if self.trouble:
            raise self.trouble
        self.running = True

    def is_running(self):
        return self.running


@pytest.fixture
def clock():
    class Clock:
        now = 1000.0

        def __call__(self):
            return self.now

    return Clock()


@pytest.fixture
def heard():
    return Heard()


@pytest.fixture
def kept():
    return Fragile()


@pytest.fixture
def keeper(kept, heard, clock):
    keeper = Keeper(kept, heard, clock)
    keeper.start()
    return keeper


def test_a_process_that_runs_is_left_alone(keeper, kept, heard):
    for _ in range(5):
        keeper.look()
    assert kept.starts == 1
    assert heard.lines == []


def test_an_ended_process_is_started_again_after_a_wait(keeper, kept, heard, clock):
    kept.running = False
    keeper.look()
    assert heard.lines == ["fragile ended (exit status 3); it is started again in 0.5 s."]
    keeper.look()
    assert kept.starts == 1
    clock.now += 0.6
    keeper.look()
    assert kept.starts == 2
    assert kept.running


def ends_at_once(keeper, kept, clock):
    """One more start and end. Returns how long the keeper waited before that start."""
    kept.running = False
    keeper.look()
    before, starts = clock.now, kept.starts
    while kept.starts == starts:
        clock.now += 0.25
        keeper.look()
    return clock.now - before


def test_what_keeps_ending_is_tried_ever_more_slowly_and_said(keeper, kept, heard, clock):
    waits = [ends_at_once(keeper, kept, clock) for _ in range(8)]
    assert waits == sorted(waits)
    assert waits[-1] == waits[-2] == 30
    assert any("KEEPS ENDING: 3 times in a row" in line for line in heard.lines)
    assert not any("KEEPS ENDING: 2 times" in line for line in heard.lines)


def test_a_steady_run_forgives_earlier_ends(keeper, kept, clock):
    for _ in range(5):
        ends_at_once(keeper, kept, clock)
    clock.now += 61
    assert ends_at_once(keeper, kept, clock) == 0.5


def test_a_start_that_fails_is_said_and_tried_again(keeper, kept, heard, clock):
    kept.running = False
    kept.trouble = ServiceError("no room")
    ends_at_once(keeper, kept, clock)
    assert "fragile could not be started: no room; it is started again in 1 s." in heard.lines
    kept.trouble = None
    ends_at_once(keeper, kept, clock)
    assert kept.running


def python(code: str, heard, **options) -> Process:
    return Process("child", [sys.executable, "-c", code], heard, Path("/"), **options)


def test_it_shows_a_process_output_with_its_name(heard):
    process = python("print('hello'); print(); import os; os.write(2, b'\\xff!\\n')", heard)
    process.start()
    process.wait(20)
    assert heard.lines == ["child: hello", "child: �!"]


def test_it_leaves_out_what_is_meant_for_another_terminal(heard):
    process = python("print('one'); print('press twice'); print('two')", heard, unsaid="press")
    process.start()
    process.wait(20)
    assert heard.lines == ["child: one", "child: two"]


def test_a_process_that_does_not_leave_is_killed_with_its_children(heard, wait_until):
    code = """
import signal, subprocess, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print("child is", subprocess.Popen(["sleep", "600"]).pid, flush=True)
time.sleep(600)
"""
    process = python(code, heard)
    process.start()
    wait_until(lambda: heard.lines, "the child")
    child = int(heard.lines[0].split()[-1])
    process.ask_to_stop()
    process.wait(0.1)
    assert not process.is_running()
    assert process.end == "signal SIGKILL"
    wait_until(lambda: not Path(f"/proc/{child}").exists() or is_zombie(child), "its end")


def is_zombie(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def test_what_a_killed_launcher_left_is_found_by_its_mark_alone(heard, tmp_path, wait_until):
    ours = python(
        "import subprocess; subprocess.run(['sleep', '600'])",
        heard,
        environment={MARK: str(tmp_path)},
    )
    another = python("import time; time.sleep(600)", heard, environment={MARK: f"{tmp_path}2"})
    ours.start()
    another.start()
    try:
        # The child's child has the mark too.
        wait_until(lambda: len(left_behind(str(tmp_path))) == 2, "both processes")
        found = left_behind(str(tmp_path))
        assert ours.process.pid in found
        end(found, 10)
        assert left_behind(str(tmp_path)) == []
        assert ours.process.wait(10) == -signal.SIGTERM
        assert another.is_running()
    finally:
        ours.hurry()
        another.hurry()


def test_one_that_ignores_the_request_is_killed(heard, tmp_path, wait_until):
    deaf = subprocess.Popen(
        [
            sys.executable,
            "-c",
            "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
            "print('deaf', flush=True); time.sleep(600)",
        ],
        stdout=subprocess.PIPE,
    )
    assert deaf.stdout.readline() == b"deaf\n"
    end([deaf.pid], 0.1)
    assert deaf.wait(10) == -signal.SIGKILL
    deaf.stdout.close()
