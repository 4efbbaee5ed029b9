"""The folder for temporary files: gone with its process, and no one else's."""

import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from exports.formats.scratch import PREFIX, remove_abandoned, scratch_folder

HOLDER = """
import sys, tempfile
import django
django.setup()
from exports.formats.scratch import scratch_folder
tempfile.tempdir = sys.argv[1]
with scratch_folder() as folder:
    (folder / "rows").write_text("half")
    print(folder, flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(scratch):
    """Another process that holds a folder; returns it and the folder's name."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(scratch)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    yield process, process.stdout.readline().strip()
    process.kill()
    process.wait()


def test_it_is_removed_at_the_end_and_after_an_error(scratch):
    with scratch_folder() as folder:
        (folder / "rows").write_text("all")
        assert folder.parent == scratch
    assert list(scratch.iterdir()) == []
    with pytest.raises(ZeroDivisionError), scratch_folder() as folder:
        (folder / "rows").write_text("half")
        raise ZeroDivisionError
    assert list(scratch.iterdir()) == []


def test_that_of_a_living_process_is_left_alone(holder, scratch):
    _, name = holder
    with scratch_folder() as mine:
        assert {str(each) for each in scratch.iterdir()} == {name, str(mine)}
    assert [str(each) for each in scratch.iterdir()] == [name]


def test_that_of_a_killed_process_is_removed_by_the_next(holder, scratch):
    process, name = holder
    process.kill()
    process.wait()
    assert [str(each) for each in scratch.iterdir()] == [name]  # nobody tidied up
    with scratch_folder() as mine:
        assert list(scratch.iterdir()) == [mine]


def test_it_touches_nothing_else(scratch, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kept").touch()
    (scratch / "other").mkdir()
    (scratch / f"{PREFIX}a-file").touch()
    (scratch / f"{PREFIX}a-link").symlink_to(elsewhere)
    remove_abandoned()
    assert {each.name for each in scratch.iterdir()} == {
        "other",
        f"{PREFIX}a-file",
        f"{PREFIX}a-link",
    }
    assert (elsewhere / "kept").exists()


def test_one_that_was_taken_while_it_was_made_is_made_anew(scratch, monkeypatch):
    """Another process tidies up just between the making of a folder and its lock."""
    real, made = tempfile.mkdtemp, []

    def make_and_lose_the_first(**options):
        made.append(real(**options))
        if len(made) == 1:
            Path(made[0]).rmdir()
        return made[-1]

    monkeypatch.setattr(tempfile, "mkdtemp", make_and_lose_the_first)
    with scratch_folder() as folder:
        assert str(folder) == made[1]
