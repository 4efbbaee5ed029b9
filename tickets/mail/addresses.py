"""Who writes, from where: names that every mail of this installation carries."""

import unicodedata
from email.headerregistry import Address
from email.utils import parseaddr
from urllib.parse import urljoin

from django.conf import settings

from tasks.registry import PermanentFailure


def sender() -> Address:
    name, address = parseaddr(settings.DEFAULT_FROM_EMAIL)
    return parsed(address, name)


def domain() -> str:
    """Of our own message ids: the sender's, as spam filters like it."""
    return sender().domain or "localhost"


def absolute(path: str) -> str:
    """The address of one of our pages, for a reader who is not in it."""
    return urljoin(settings.TEAMDESK_URL, path)


def one_line(text: str) -> str:
    """``text`` as it may stand in a header: no line breaks, no control characters, and nothing that
    looks encoded, which its reader would decode."""
    printable = (each for each in " ".join(text.split()) if unicodedata.category(each) != "Cc")
    return "".join(printable).replace("=?", "= ?")


def parsed(address: str, name: str = "") -> Address:
    """Raises PermanentFailure if nothing can be sent there."""
    local, _, host = address.rpartition("@")
    if not local or not host or any(each.isspace() or not each.isprintable() for each in address):
        raise PermanentFailure(f"“{address}” is no e-mail address.")
    try:
        # Domains have an ASCII form; the part before the @ has none.
        return Address(one_line(name), local, host.encode("idna").decode())
    except (UnicodeError, ValueError) as error:
        raise PermanentFailure(f"“{address}” is no e-mail address: {error}") from error
