"""Kinds that only the named faults need, also loaded by real workers (``celery -I``).

Those of ``tests/tasks/kinds.py`` come with them.
"""

from tests.tasks.kinds import write_note  # noqa: F401  registers the others
