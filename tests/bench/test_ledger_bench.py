"""The benchmark of the ledger: that it runs, and what its exit code says. Never how fast it is."""

import contextlib
import json
import subprocess
import sys

import pytest

from bench import comparison, ledger, machine, stage
from bench.measuring import Book, Target, percentile, table
from tests.processes import ROOT


@pytest.mark.processes
def test_our_own_arm_does_every_job_once_and_writes_its_figures(tmp_path):
    file = tmp_path / "figures.json"
    options = ("--quick", "--rounds=1", "--jobs=20", "--arms=ours", "--metrics=latency,drain")
    done = subprocess.run(
        [sys.executable, "bench/ledger.py", *options, f"--json={file}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    figures = json.loads(file.read_text())
    for figure in figures:
        assert set(figure) == {"arm", "metric", "unit", "median", "min", "max", "runs"}
        assert figure["min"] <= figure["median"] <= figure["max"]
    by_metric = {figure["metric"]: figure for figure in figures}
    assert {"drain", "commit to effect, median", "commit to effect, p99"} <= set(by_metric)
    assert by_metric["of it: claim"]["arm"] == "ours"
    assert (by_metric["lost"]["max"], by_metric["doubled"]["max"]) == (0, 0)
    assert "| drain | median jobs/s |" in done.stdout


@pytest.mark.parametrize("what", ["lost", "doubled"])
def test_an_arm_that_lost_or_doubled_a_job_fails_the_benchmark(what, monkeypatch, capsys):
    book = Book()
    for each in ("lost", "doubled"):
        book.add("procrastinate", each, "jobs", 0)
        book.add("procrastinate", each, "jobs", each == what)
    _without_servers(monkeypatch, book)
    assert ledger.main(["--arms=ours"]) == 1
    shown = {"lost": "| procrastinate | 1 | 0 |", "doubled": "| procrastinate | 0 | 1 |"}
    assert shown[what] in capsys.readouterr().out


def test_an_arm_that_did_not_run_fails_it_too(monkeypatch):
    book = Book()
    book.failures.append("celery")
    _without_servers(monkeypatch, book)
    assert ledger.main(["--arms=ours"]) == 2


def test_a_missed_target_does_not_fail_it(monkeypatch, capsys):
    book = Book()
    book.add("ours", "drain", "jobs/s", 100)
    book.add("procrastinate", "drain", "jobs/s", 300)
    _without_servers(monkeypatch, book)
    assert ledger.main(["--arms=ours"]) == 0
    assert "ours : best peer ≥ 1.5×: 0.33× – MISSED" in capsys.readouterr().out


def test_it_says_in_one_line_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(ledger.NEEDED, "no_such_module", "no-such-package")
    assert ledger.main(["--quick"]) == 2
    complaint = capsys.readouterr().err
    assert "no-such-package" in complaint
    assert "bench/requirements.txt" in complaint
    assert complaint.count("\n") == 1


def test_the_table_shows_our_ratio_to_each(capsys):
    book = Book()
    for value in (10, 30, 20):
        book.add("ours", "drain", "jobs/s", value)
    book.add("celery", "drain", "jobs/s", 8)
    assert table(book, "drain", higher_is_better=True)[2:] == [
        "| ours | 20.0 | 10.0 | 30.0 | 3 |  |",
        "| celery | 8.00 | 8.00 | 8.00 | 1 | 2.50 |",
    ]


def test_a_target_may_be_a_least_or_a_most():
    assert Target("", 1.5, 1.5, at_least=True).is_met
    assert not Target("", 1.4, 1.5, at_least=True).is_met
    assert Target("", 1.4, 1.5).is_met
    assert not Target("", 1.6, 1.5).is_met


def test_the_99th_percentile_is_exceeded_by_one_in_a_hundred():
    assert percentile(range(1, 101), 0.99) == 99
    assert percentile(range(1, 201), 0.99) == 198
    assert percentile([7], 0.99) == 7


def _without_servers(monkeypatch, book):
    monkeypatch.setattr(stage, "stage", contextlib.nullcontext)
    monkeypatch.setattr(machine, "description", lambda servers: [])
    monkeypatch.setattr(comparison, "compare", lambda servers, options: book)
