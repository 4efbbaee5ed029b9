"""How log lines look. Every line, whoever writes it, says what it is about.

``line`` is for people, ``json`` for programs: one object a line. Both in UTC.
"""

import logging
import time

from pythonjsonlogger.json import JsonFormatter

from tasks import correlation


class About(logging.Filter):
    """Of a handler: adds ``about`` to every record that passes it, also to those of libraries."""

    def filter(self, record):
        request = getattr(record, "request", None)
        # Django logs some responses when the request's own context has ended.
        request_id = correlation.request_id.get() or getattr(request, "request_id", "")
        user_id = correlation.user_id.get() or getattr(request, "user_id", None)
        record.about = dict(correlation.job.get())
        if request_id:
            record.about["request_id"] = request_id
        if user_id:
            record.about["user_id"] = user_id
        return True


class Line(logging.Formatter):
    """``2026-12-01T11:17:59.608Z WARNING tasks.worker: … [task=12 run=0 … request_id=…]``"""

    converter = time.gmtime
    default_time_format = "%Y-%m-%dT%H:%M:%S"
    default_msec_format = "%s.%03dZ"

    def __init__(self):
        super().__init__("%(asctime)s %(levelname)s %(name)s: %(message)s")

    def formatMessage(self, record):
        line = super().formatMessage(record)
        about = " ".join(f"{name}={value}" for name, value in record.about.items())
        return f"{line} [{about}]" if about else line


class Json(JsonFormatter):
    """One object a line: time, level, logger, message, what it is about, and a record's extras."""

    def __init__(self):
        super().__init__(
            "%(levelname)s %(name)s %(message)s",
            rename_fields={"levelname": "level", "name": "logger"},
            timestamp="time",
            json_default=str,
            json_ensure_ascii=False,
        )

    def process_log_record(self, log_data):
        log_data.update(log_data.pop("about", {}))
        log_data.pop("request", None)  # the message names it
        time = log_data.pop("time").isoformat(timespec="milliseconds")
        return {"time": time.replace("+00:00", "Z")} | log_data
