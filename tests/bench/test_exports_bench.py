"""The benchmark of exports: that it runs, and what its exit code says. Never how fast it is."""

import contextlib
import json
import subprocess
import sys

import pytest

from bench import exports, machine, stage
from bench.exporting.report import targets
from bench.exporting.words import Pools
from bench.measuring import Book
from tests.processes import ROOT


@pytest.mark.processes
@pytest.mark.timeout(400)  # it starts eight programs, one after the other
def test_our_own_file_has_every_ticket_and_comes_through_the_web(tmp_path):
    file = tmp_path / "figures.json"
    options = ("--quick", "--rounds=1", "--sizes=300", "--arms=ours,raw COPY")
    done = subprocess.run(
        [sys.executable, "bench/exports.py", *options, f"--json={file}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    figures = {(each["arm"], each["metric"]): each for each in json.loads(file.read_text())}
    for arm in ("ours", "raw COPY"):
        assert figures[arm, "300 tickets"]["runs"] == 1
        assert (figures[arm, "lost"]["max"], figures[arm, "doubled"]["max"]) == (0, 0)
    assert figures["ours", "download"]["unit"] == "MB/s"
    for arm in ("plain page", "request to 202"):
        assert figures[arm, "answer under load, p95"]["median"] > 0
    assert "target: 300 tickets, ours : raw COPY ≤ 3.5×" in done.stdout


@pytest.mark.parametrize("what", ["lost", "doubled"])
def test_a_row_that_was_lost_or_doubled_fails_the_benchmark(what, monkeypatch):
    _measures_only(monkeypatch, lambda book: book.add("ours", what, "rows", 1))
    assert exports.main(["--arms=ours"]) == 1


def test_an_arm_that_did_not_run_fails_it_too(monkeypatch):
    _measures_only(monkeypatch, lambda book: book.failures.append("raw COPY"))
    assert exports.main(["--arms=ours"]) == 2


def test_a_missed_target_does_not_fail_it(monkeypatch, capsys):
    def measured(book):
        book.add("ours", "1,000,000 tickets", "s", 36)
        book.add("raw COPY", "1,000,000 tickets", "s", 10)

    _measures_only(monkeypatch, measured)
    assert exports.main(["--arms=ours"]) == 0
    assert "1,000,000 tickets, ours : raw COPY ≤ 3.5×: 3.60× – MISSED" in capsys.readouterr().out


def test_it_says_in_one_line_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(exports.NEEDED, "no_such_module", "no-such-package")
    assert exports.main(["--quick"]) == 2
    complaint = capsys.readouterr().err
    assert "no-such-package" in complaint
    assert complaint.count("\n") == 1


def test_a_peer_that_takes_ten_times_as_long_meets_its_target():
    book = Book()
    book.add("ours", "100,000 tickets", "s", 2)
    book.add("django-import-export", "100,000 tickets", "s", 20)
    (target,) = targets(book, [10_000, 100_000, 1_000_000])
    assert (target.value, target.limit, target.is_met) == (10, 10, True)


def test_memory_is_a_target_of_its_own_unit():
    book = Book()
    book.add("ours", "memory above idle, 100,000 tickets", "MB", 51)
    (target,) = targets(book, [100_000])
    assert str(target) == ("target: memory above idle, 100,000 tickets ≤ 50 MB: 51.00 MB – MISSED")


def test_its_tickets_are_the_same_in_every_run_and_of_many_lengths():
    one, other = Pools(), Pools()
    assert vars(one).keys() == vars(other).keys()
    assert (one.subjects, one.descriptions) == (other.subjects, other.descriptions)
    lengths = [len(text) for text in one.descriptions]
    assert min(lengths) < 40
    assert max(lengths) > 5_000
    assert {text[0] for text in one.subjects} >= set("=+-＝")


def _measures_only(monkeypatch, measured):
    monkeypatch.setattr(stage, "stage", contextlib.nullcontext)
    monkeypatch.setattr(machine, "description", lambda servers: [])
    monkeypatch.setattr(exports, "measure", lambda stage, options, book: measured(book))
