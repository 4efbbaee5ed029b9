"""The stored result of an export, in pieces."""

import uuid

import psycopg
from django.db import connection, models, transaction

REMOVED_AT_ONCE = 20  # in one DELETE: about 10 MiB, far below any statement timeout


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
