"""The stored result of an export, in pieces."""

import uuid

import psycopg
from django.db import connection, models, transaction

REMOVED_AT_ONCE = 20  # in one DELETE: about 10 MiB, far below any statement timeout
MOST_OF_A_CHUNK = 2**30  # PostgreSQL's longest value has as many bytes
# The chunk that holds a byte is the last one that does not begin after it. A whole chunk is sent as
# it is stored; substring() makes two more copies of it, which takes three times as long. Of a part
# PostgreSQL reads only the pages that it asks for, as the value is not compressed.
_READ = """
SELECT CASE WHEN first_byte = %(first)s AND octet_length(data) <= %(at_most)s THEN data
       ELSE substring(data FROM least(%(first)s - first_byte, 2000000000)::int + 1 FOR %(at_most)s)
       END
FROM exports_exportchunk
WHERE export_id = %(export)s AND execution_id = %(execution)s AND first_byte <= %(first)s
ORDER BY first_byte DESC
LIMIT 1
"""


class ExportChunkQuerySet(models.QuerySet):
    def store(self, export, execution_id: uuid.UUID, first_byte: int, data: bytes) -> None:
        """Add one chunk; ``first_byte`` is how many bytes of the file come before it.

        Sent in binary: Django would make half a megabyte twice as many hexadecimal digits in the
        statement's text, which takes three times as long.
        """
        connection.ensure_connection()
        with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
            cursor.execute(
                "INSERT INTO exports_exportchunk (export_id, execution_id, first_byte, data)"
                " VALUES (%s, %s, %s, %b)",
                [export.pk, execution_id, first_byte, data],
            )

    def read(self, export_id: int, execution_id: uuid.UUID, first_byte: int, at_most: int) -> bytes:
        """What the chunk that holds this byte of the file has from there on, cut to ``at_most``
        bytes. Fetched in binary, like ``store``.

        Raises:
            ExportChunk.DoesNotExist: no chunk holds it.
        """
        wanted = {
            "export": export_id,
            "execution": execution_id,
            "first": first_byte,
            "at_most": min(at_most, MOST_OF_A_CHUNK),
        }
        connection.ensure_connection()
        with connection.wrap_database_errors, psycopg.Cursor(connection.connection) as cursor:
            row = cursor.execute(_READ, wanted, binary=True).fetchone()
        if not row or not row[0]:
            raise self.model.DoesNotExist(
                f"Export {export_id} has no byte {first_byte} of execution {execution_id} any more."
            )
        return row[0]

    def remove_some(self) -> int:
        """Delete one batch of these, past rows that another is deleting. Returns how many."""
        ids = self.order_by("pk").select_for_update(skip_locked=True).values_list("pk", flat=True)
        with transaction.atomic():
            removed, _ = self.model.objects.filter(pk__in=list(ids[:REMOVED_AT_ONCE])).delete()
        return removed


class ExportChunk(models.Model):
    """A piece of a result, committed while the export runs under the execution that wrote it."""

    export = models.ForeignKey("exports.Export", models.CASCADE, related_name="chunks")
    execution_id = models.UUIDField()
    # Where it begins in the file: chunks of one file may differ in size.
    first_byte = models.PositiveBigIntegerField()
    # STORAGE EXTERNAL (see the migration): PostgreSQL stores it as it comes, without trying to
    # compress every piece.
    data = models.BinaryField()

    objects = ExportChunkQuerySet.as_manager()

    class Meta:
        constraints = [
            # Readers, in this order: the download, which finds the chunk of any byte in one step;
            # the purge, which skips from execution to execution.
            models.UniqueConstraint(
                fields=["export", "execution_id", "first_byte"], name="one_chunk_per_first_byte"
            )
        ]

    def __str__(self):
        return f"{self.export_id} {self.first_byte}"
