"""Django's SMTP backend, bounded: whatever the server does, the whole call ends in time.

Looking up the server's name is the system's own affair and cannot be interrupted from here; where
that hangs, Celery ends the process after the kind's time limit, which costs an attempt.
"""

import contextlib
import functools
import os
import smtplib
import socket
import threading
import time
from email.message import EmailMessage

from django.core.mail.backends import smtp

from tasks.registry import PermanentFailure

SECONDS = 45  # of a call in all; each step of it has EMAIL_TIMEOUT besides
LATE = "The mail server took too long: the whole call is bounded."


class EmailBackend(smtp.EmailBackend):
    """Set ``until`` (of ``time.monotonic()``) before it is opened. ``accepted`` is the server's yes
    to the last message, the moment it is read; None while there is none."""

    until: float | None = None

    @property
    def accepted(self) -> bytes | None:
        return self.connection and self.connection.accepted

    @property
    def connection_class(self):
        until = self.until or time.monotonic() + SECONDS
        return functools.partial(_BoundedSSL if self.use_ssl else _Bounded, until=until)

    def _send(self, email_message):
        message = email_message.message()
        if not isinstance(message, EmailMessage):
            return super()._send(email_message)
        [recipient], sender = email_message.recipients(), email_message.from_email
        self.connection.ehlo_or_helo_if_needed()
        if not (sender + recipient).isascii() and not self.connection.has_extn("smtputf8"):
            raise PermanentFailure(
                f"“{recipient}” has characters that the mail server cannot carry (no SMTPUTF8)."
            )
        self.connection.send_message(message, sender, [recipient])
        return True


class _Bounded(smtplib.SMTP):
    """``timeout`` bounds each wait for the server, which one byte ends; ``until`` bounds them all.

    A timer cuts the connection. And nothing is sent after ``until``: a process that was frozen in
    the middle and wakes when another has taken its task over does not go on where it was.
    """

    accepted: bytes | None = None
    _timer: threading.Timer | None = None

    def __init__(self, *args, until: float, **kwargs):
        self.until = until
        super().__init__(*args, **kwargs)

    def _seconds_left(self) -> float:
        left = self.until - time.monotonic()
        if left <= 0:
            raise TimeoutError(LATE)
        return left

    def _get_socket(self, host, port, timeout):
        # One by one, not by create_connection, which gives each of many addresses the whole time.
        error: OSError | None = None
        for family, kind, protocol, _, address in socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM
        ):
            sock = socket.socket(family, kind, protocol)
            try:
                sock.settimeout(min(timeout, self._seconds_left()))
                sock.connect(address)
            except OSError as failed:
                sock.close()
                error = failed
                continue
            sock.settimeout(timeout)
            self._cut_in_time(sock)
            return sock
        raise error or OSError(f"{host} has no address.")

    def _cut_in_time(self, sock: socket.socket) -> None:
        # TLS wraps the socket into another object of the same connection: a second handle on the
        # connection itself cuts whichever waits.
        handle = socket.socket(fileno=os.dup(sock.fileno()))

        def cut():
            with handle, contextlib.suppress(OSError):  # it may be closed already
                handle.shutdown(socket.SHUT_RDWR)

        self._handle = handle
        self._timer = threading.Timer(self._seconds_left(), cut)
        self._timer.daemon = True
        self._timer.start()

    def send(self, s):
        self._seconds_left()
        super().send(s)

    def getreply(self):
        if self.file is None:
            self.file = _WholeLines(self.sock.makefile("rb"))
        try:
            return super().getreply()
        except smtplib.SMTPServerDisconnected as error:
            if time.monotonic() >= self.until:
                raise TimeoutError(LATE) from error
            raise

    def data(self, msg):
        code, words = super().data(msg)
        if code == 250:
            self.accepted = words
        return code, words

    def close(self):
        if self._timer:
            self._timer.cancel()
            self._handle.close()
        super().close()


class _WholeLines:
    """A line that the connection's end cut short is none: ``25`` of a ``250`` is not a yes, and
    ``250`` may have been going on as anything."""

    def __init__(self, file):
        self._file = file
        self.close = file.close

    def readline(self, limit: int) -> bytes:
        line = self._file.readline(limit)
        return line if line.endswith(b"\n") or len(line) == limit else b""


class _BoundedSSL(smtplib.SMTP_SSL, _Bounded):
    def __init__(self, *args, until: float, **kwargs):
        self.until = until
        super().__init__(*args, **kwargs)
