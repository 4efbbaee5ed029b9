"""Opened by LibreOffice itself, without its window: the same cells as the database."""

import os
import shutil
import subprocess

import pytest
from openpyxl import load_workbook
from openpyxl.utils.escape import unescape

from exports.formats.delimited import BOM
from tests.exports.conftest import content_of
from tests.exports.formats.reading import TIMES, csv_row, local, workbook_row

pytestmark = pytest.mark.django_db(transaction=True)
ZONE = "Europe/Berlin"
NUMBERS, TEXT = "1", "2"  # how its import reads a column
UTF_8 = "76"


@pytest.fixture(scope="module")
def libreoffice() -> str:
    """Its program's path; without one the test is skipped, with CI=true it fails."""
    found = shutil.which("soffice") or shutil.which("libreoffice")
    if found:
        return found
    reason = "LibreOffice Calc is not installed; bin/test installs it as root on Debian."
    if os.environ.get("CI", "").lower() in {"1", "true"}:
        pytest.fail(reason)
    pytest.skip(reason)


@pytest.fixture
def opened(libreoffice, tmp_path):
    """``opened(export, *options)``: the rows as LibreOffice has them after opening the file, the
    header first. What it has is read from a workbook that it saves."""

    def open_and_save(export, *options) -> list[list]:
        file = tmp_path / f"export{export.extension}"
        file.write_bytes(content_of(export))
        subprocess.run(
            [
                *(libreoffice, f"-env:UserInstallation=file://{tmp_path}/profile", "--headless"),
                *(*options, "--convert-to", "xlsx", "--outdir", tmp_path / "saved", file),
            ],
            check=True,
            timeout=120,
            capture_output=True,
        )
        saved = load_workbook(tmp_path / "saved" / "export.xlsx", data_only=True)
        return [list(row) for row in saved.worksheets[0].iter_rows(values_only=True)]

    return open_and_save


def comparable(rows: list[list]) -> list[list]:
    """A line within its cells ends with a line feed, whatever the file had. And what it saves is a
    workbook, in which it does not escape a text that looks like an escape."""
    return [
        [
            unescape(cell).replace("\r\n", "\n").replace("\r", "\n")
            if isinstance(cell, str)
            else cell
            for cell in row
        ]
        for row in rows
    ]


def test_a_workbook(alice, many, asked, run, opened):
    tickets = many(120)
    header, *rows = opened(run(asked(alice, "xlsx", time_zone=ZONE)))
    assert header[0] == "ID" and header[-1] == f"Closed ({ZONE})"
    expected = [workbook_row(ticket, ZONE) for ticket in tickets]
    assert comparable(rows) == comparable(expected)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
def test_csv(alice, many, asked, run, opened, delimiter):
    tickets = many(120)
    export = run(asked(alice, "csv", time_zone=ZONE, delimiter=delimiter))
    assert content_of(export).startswith(BOM)
    kinds = {"id": NUMBERS} | dict.fromkeys(TIMES, NUMBERS)
    columns = "/".join(
        f"{number}/{kinds.get(key, TEXT)}" for number, key in enumerate(export.columns, start=1)
    )
    how = f"CSV:{ord(delimiter)},34,{UTF_8},1,{columns},0,false,true"
    header, *rows = opened(export, f"--infilter={how}")
    assert header[0] == "ID" and header[-1] == f"Closed ({ZONE})"
    expected = [
        [
            ticket.pk if key == "id" else as_time(ticket, key) if key in TIMES else cell or None
            for key, cell in zip(export.columns, csv_row(ticket, ZONE), strict=True)
        ]
        for ticket in tickets
    ]
    assert comparable(rows) == comparable(expected)


def as_time(ticket, key):
    moment = getattr(ticket, key)
    return moment and local(moment, ZONE)
