"""What a format says of its file: the end of its name, and its content type."""

from datetime import UTC, datetime

import pytest

from exports.models import Export, FileFormat


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
    export.task.finished_at = datetime(2026, 12, 1, 12, tzinfo=UTC)
    assert export.file_name().endswith(f"2026-12-01{extension}")
    assert export.content_type == content_type
