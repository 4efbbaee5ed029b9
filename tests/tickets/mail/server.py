"""Real SMTP servers on this machine: one that obeys the tests, and ones that misbehave."""

import asyncio
import contextlib
import email
import email.policy
import socket
import threading
from email.message import EmailMessage

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import AuthResult

from teamdesk.embedded import free_port


class SmtpServer:
    """Takes every mail, unless told otherwise.

    ``answers``: what to say instead of yes, by command, and there by recipient ("*" for everyone):
    ``answers["RCPT"] = {"bob@example.org": "550 5.1.1 No such user"}``. ``gate``: while it is not
    set, ``held`` commands wait for it.
    """

    def __init__(self, port: int | None = None, **options):
        self.port = port or free_port()
        self.options = options
        self.answers: dict[str, dict[str, str]] = {}
        self.received: list[EmailMessage] = []
        self.recipients: list[str] = []
        self.attempts: list[str] = []  # of everyone named, whether or not accepted
        self.held = ""
        self.gate = threading.Event()
        self.waiting = threading.Event()
        self._controller: Controller | None = None
        self.start()

    def start(self) -> None:
        self._controller = Controller(self, hostname="127.0.0.1", port=self.port, **self.options)
        self._controller.start()

    def stop(self) -> None:
        self.gate.set()
        if self._controller:
            self._controller.stop()
            self._controller = None

    # What aiosmtpd calls

    async def handle_RCPT(self, server, session, envelope, address, rcpt_options):
        self.attempts.append(address)
        await self._hold("RCPT")
        answer = self._answer("RCPT", address)
        if not answer:
            envelope.rcpt_tos.append(address)
        return answer or "250 OK"

    async def handle_MAIL(self, server, session, envelope, address, mail_options):
        answer = self._answer("MAIL", address)
        if not answer:
            envelope.mail_from = address
        return answer or "250 OK"

    async def handle_DATA(self, server, session, envelope):
        await self._hold("DATA")
        answer = self._answer("DATA", envelope.rcpt_tos[0])
        if answer:
            return answer
        message = email.message_from_bytes(envelope.content, policy=email.policy.default)
        self.received.append(message)
        self.recipients += envelope.rcpt_tos
        return "250 2.0.0 Queued as 4711"

    def _answer(self, command: str, address: str) -> str | None:
        answers = self.answers.get(command, {})
        return answers.get(address) or answers.get("*")

    async def _hold(self, command: str) -> None:
        if command == self.held:
            self.waiting.set()
            while not self.gate.is_set():
                await asyncio.sleep(0.01)


def refuses_every_log_in(server, session, envelope, mechanism, auth_data) -> AuthResult:
    return AuthResult(success=False, handled=False, message="535 5.7.8 Wrong password")


class BadServer:
    """Speaks line by line as told, then trickles one byte at a time for ever, or says nothing.

    ``script``: the answers to the client's lines in order, the first to its connection.
    """

    def __init__(self, script: list[bytes], then: bytes | None):
        self.script, self.then = script, then
        self._ended = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def stop(self) -> None:
        self._ended.set()
        # Wakes the thread that accepts.
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port), 5):
            pass
        self._thread.join(10)
        self._listener.close()

    def _serve(self) -> None:
        while not self._ended.is_set():
            client, _ = self._listener.accept()
            with client, contextlib.suppress(OSError):
                self._talk(client)

    def _talk(self, client: socket.socket) -> None:
        client.settimeout(20)
        for number, answer in enumerate(self.script):
            if number and not client.recv(4096):
                return
            client.sendall(answer)
        if self.then is None:
            self._ended.wait(60)
        for byte in iter(self.then or b""):
            if self._ended.wait(0.05):
                return
            client.sendall(bytes([byte]))
