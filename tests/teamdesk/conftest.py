import io
import logging

import pytest

from teamdesk import logs


@pytest.fixture
def written():
    """``written(form)``: starts to write log lines in this form; returns the stream."""
    handlers = []

    def start(form):
        stream = io.StringIO()
        handler = logging.StreamHandler(stream)
        handler.addFilter(logs.About())
        handler.setFormatter({"line": logs.Line, "json": logs.Json}[form]())
        logging.getLogger().addHandler(handler)
        handlers.append(handler)
        return stream

    yield start
    for handler in handlers:
        logging.getLogger().removeHandler(handler)
