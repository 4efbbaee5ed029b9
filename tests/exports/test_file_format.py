"""What a format says of its file: the end of its name, and its content type."""

from datetime import timedelta

import pytest

from exports.models import Export, FileFormat
from tests.exports.conftest import aged, reloaded


@pytest.mark.parametrize(
    ("file_format", "extension", "content_type"),
    [
        (FileFormat.CSV, ".csv", "text/csv; charset=utf-8"),
        (FileFormat.CSV_GZ, ".csv.gz", "application/gzip"),
        (
            FileFormat.XLSX,
            ".xlsx",
            "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
        ),
        (FileFormat.JSONL, ".jsonl", "application/jsonl"),
    ],
)
def test_a_file_is_named_and_sent_as_what_it_is(
    alice, support, file_format, extension, content_type
):
    export = Export.objects.request(by=alice, filters={}, file_format=file_format)
    export = aged(reloaded(export), finished_at=timedelta())
    assert export.file_name().endswith(f"{export.task.finished_at:%Y-%m-%d}{extension}")
    assert export.content_type == content_type
