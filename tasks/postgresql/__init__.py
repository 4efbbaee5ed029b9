"""Django's PostgreSQL engine with connections that do not wait for ever (``tasks/patience.py``)."""
