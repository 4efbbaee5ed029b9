"""One call to the mail server, and what its answers mean."""

import contextlib
import smtplib

from django.core.mail import get_connection

from tasks.errors import clean
from tasks.registry import PermanentFailure
from tickets.mail.letter import Letter

# The server does not let us in, or not yet. That says nothing about this mail: whoever runs this
# installation mends it, and then all that waited leaves.
_NOT_LET_IN = {530, 534, 535, 538}


class MailDeferred(Exception):
    """The mail server did not take it now. The text has its words."""


class Posting:
    """A call that must end by ``until`` (of ``time.monotonic()``).

    ``answer`` is the server's yes as soon as there is one, whatever happens after.
    """

    def __init__(self, until: float):
        self.answer: str | None = None
        self._connection = get_connection()
        self._connection.until = until

    def send(self, letter: Letter) -> None:
        """
        Raises:
            PermanentFailure: the server will not take this mail.
            MailDeferred, OSError: not now.
        """
        try:
            self._connection.open()
            sent = self._connection.send_messages([letter])
        except smtplib.SMTPRecipientsRefused as error:
            [(code, words)] = error.recipients.values()
            raise _refusal(code, words) from error
        except (smtplib.SMTPSenderRefused, smtplib.SMTPDataError) as error:
            raise _refusal(error.smtp_code, error.smtp_error) from error
        except smtplib.SMTPResponseException as error:
            raise MailDeferred(_text(error.smtp_code, error.smtp_error)) from error
        finally:
            accepted = getattr(self._connection, "accepted", None)
            if accepted is not None:
                self.answer = _text(250, accepted)
        if not sent:
            raise MailDeferred("The mail backend sent nothing.")
        self.answer = self.answer or "kept"  # by a backend that has no server

    def close(self) -> None:
        """Say good-bye. How the server takes that changes nothing."""
        with contextlib.suppress(OSError):
            self._connection.close()


def _refusal(code: int, words) -> Exception:
    is_final = 500 <= code <= 599 and code not in _NOT_LET_IN
    return (PermanentFailure if is_final else MailDeferred)(_text(code, words))


def _text(code: int, words) -> str:
    """``550 5.1.1 No such user``."""
    if isinstance(words, bytes):
        words = words.decode("utf-8", "replace")
    return clean(f"{code} {' '.join(str(words).split())}")
