"""Chunks that nobody may need any more, and their removal."""

import time

from django.conf import settings
from django.db import connection
from django.db.models import Exists, OuterRef

from exports.models import Export, ExportChunk
from tasks.registry import holds_back, purges

# Whose chunks nobody may need any more: not the execution that holds the lease now, nor the result
# within its time and the grace in which running downloads end. The recursion skips from one stored
# execution to the next on the chunks' unique index, so a round costs as many steps as there are
# stored results, not as there are chunks or past exports.
_UNNEEDED = """
WITH RECURSIVE stored AS (
    (SELECT export_id, execution_id FROM exports_exportchunk ORDER BY 1, 2 LIMIT 1)
    UNION ALL
    SELECT following.* FROM stored CROSS JOIN LATERAL (
        SELECT export_id, execution_id FROM exports_exportchunk chunk
        WHERE (chunk.export_id, chunk.execution_id) > (stored.export_id, stored.execution_id)
        ORDER BY 1, 2 LIMIT 1
    ) following
)
SELECT stored.export_id, stored.execution_id
FROM stored
JOIN tasks_backgroundtask task ON task.id = stored.export_id
JOIN exports_export export ON export.task_id = stored.export_id
WHERE NOT (task.status = 'RUNNING' AND task.execution_id = stored.execution_id)
  AND NOT (task.status = 'COMPLETED' AND export.execution_id = stored.execution_id
           AND (task.expires_at IS NULL OR task.expires_at + %(grace)s > clock_timestamp()))
  AND (%(export)s::bigint IS NULL OR stored.export_id = %(export)s)
"""


@purges
def purge_results(seconds: float) -> int:
    """Remove the chunks that nobody may need any more, within ``seconds``. Returns how many."""
    deadline = time.monotonic() + seconds
    removed = 0
    for chunks in unneeded_chunks():
        while time.monotonic() < deadline and (batch := chunks.remove_some()):
            removed += batch
    return removed


@holds_back
def is_stored():
    """Chunks go by the purge above, a few at a time; only then does the ledger forget the export,
    and the request goes with its task."""
    return Exists(ExportChunk.objects.filter(export_id=OuterRef("pk")))


def unneeded_chunks(export: Export | None = None) -> list:
    """One queryset per execution, of all exports or of this one. What is unneeded once stays so,
    whatever happens before it is removed."""
    parameters = {"grace": settings.TEAMDESK_PURGE_GRACE, "export": export and export.pk}
    with connection.cursor() as cursor:
        cursor.execute(_UNNEEDED, parameters)
        return [
            ExportChunk.objects.filter(export_id=export_id, execution_id=execution_id)
            for export_id, execution_id in cursor.fetchall()
        ]
