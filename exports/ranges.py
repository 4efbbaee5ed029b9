"""Which part of a file a request asks for: Range and If-Range of RFC 9110."""

import re

from django.utils.http import parse_http_date_safe

# One part, among empty elements of the list as the grammar allows them. More digits than any file
# needs are no number to us, and the header is ignored.
_ONE_PART = re.compile(r"bytes=[ \t,]*([0-9]{0,40})-([0-9]{0,40})[ \t,]*", re.IGNORECASE)


class Unsatisfiable(ValueError):
    """The file has no byte of the part that was asked for."""


def asked_for(header: str, size: int) -> range | None:
    """The positions that a Range header asks for, of a file of ``size`` bytes.

    None means the whole file: the header is of another unit, malformed, or asks for several parts.
    RFC 9110 (14.2) lets a server ignore any of them. Several parts would be a body of another
    type, for which no client that resumes a download asks, and a cheap way to have each chunk read
    many times.

    Raises:
        Unsatisfiable: well formed, but beyond the end.
    """
    found = _ONE_PART.fullmatch(header)
    if not found or found.groups() == ("", ""):
        return None
    first, last = (int(digits) if digits else None for digits in found.groups())
    if first is None:
        return _the_last(last, size)
    if last is not None and last < first:
        return None
    if first >= size:
        raise Unsatisfiable
    return range(first, size if last is None else min(last + 1, size))


def _the_last(length: int, size: int) -> range | None:
    if length == 0:
        raise Unsatisfiable
    # Content-Range has no words for a part of an empty file; the whole of it is what was asked.
    return range(max(size - length, 0), size) if size else None


def is_of_the_same(if_range: str | None, etag: str, last_modified: int) -> bool:
    """Whether the file is still the one of which the client has a part, by If-Range (13.1.5).

    Without the header there is nothing to compare. A weak tag never matches. A date must be equal
    and not only earlier; it is a strong validator here, as what was completed never changes.
    """
    if if_range is None:
        return True
    if if_range.startswith(('"', "W/")):
        return if_range == etag
    return parse_http_date_safe(if_range) == last_modified
