"""The file of an export over HTTP: whole, or from where an earlier download broke off."""

import re
import unicodedata
from urllib.parse import quote

from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.utils.cache import get_conditional_response
from django.utils.http import http_date
from django.utils.translation import gettext as _
from django.views.decorators.cache import cache_control

from exports import ranges
from exports.access import for_people_and_programs, own_export_or_404
from exports.models import Export
from exports.views import refused
from tasks.models import TaskStatus

# ASCII that can be seen, but quotes, backslashes and the percent signs that some programs decode.
_SIMPLE = re.compile(r"[ !#$&-\[\]-~]*")


# private: never in a cache that people share. no-cache and not no-store: a client may keep what it
# has of a broken download, but asks here before each use, so rights and expiry are judged every
# time. no-transform: a proxy that compresses text, as that of docker-compose.yml does, would take
# length and ranges away.
@cache_control(private=True, no_cache=True, no_transform=True)
@for_people_and_programs("GET", "HEAD")
def export_download(request: HttpRequest, pk: int) -> HttpResponse:
    """200 or 206 streamed; 304, 412 and 416 by RFC 9110; 404 no longer visible; 409 not ready; 410
    past its time, also for the rest of a download that broke off."""
    export = own_export_or_404(request.user, pk)
    if not export.is_visible_to(request.user):
        raise Http404
    if export.task.status != TaskStatus.COMPLETED:
        return refused(request, export, _("This export is not ready for download."), 409)
    if export.is_expired:
        return refused(request, export, _("The file has expired. Run the export again."), 410)
    last_modified = int(export.task.finished_at.timestamp())
    response = get_conditional_response(request, export.etag, last_modified)
    if response is None:
        response = _whole_or_part(request, export, last_modified)
    elif response.status_code == 412:
        response = refused(request, export, _("The file is not the one you ask about."), 412)
    response.headers["Accept-Ranges"] = "bytes"
    if response.status_code < 400:
        response.headers["ETag"] = export.etag
        response.headers["Last-Modified"] = http_date(last_modified)
    return response


def _whole_or_part(request: HttpRequest, export: Export, last_modified: int) -> HttpResponse:
    part = None
    # Ranges are defined for GET alone (RFC 9110, 14.2).
    if request.method == "GET" and ranges.is_of_the_same(
        request.headers.get("If-Range"), export.etag, last_modified
    ):
        try:
            part = ranges.asked_for(request.headers.get("Range", ""), export.size)
        except ranges.Unsatisfiable:
            text = _("The file ends before the part you ask for.")
            response = refused(request, export, text, 416)
            response.headers["Content-Range"] = f"bytes */{export.size}"
            return response
    return _streamed(request, export, part)


def _streamed(request: HttpRequest, export: Export, part: range | None) -> HttpResponse:
    if request.method == "HEAD":
        # The server drops a body, but only after it was read from the database.
        response = HttpResponse(content_type=export.content_type)
    else:
        response = StreamingHttpResponse(export.content(part), content_type=export.content_type)
    length = export.size
    if part is not None:
        length = len(part)
        response.status_code = 206
        response.headers["Content-Range"] = f"bytes {part.start}-{part.stop - 1}/{export.size}"
    response.headers["Content-Length"] = str(length)
    response.headers["Content-Disposition"] = attachment(export.file_name())
    return response


def attachment(name: str) -> str:
    """A Content-Disposition to save under this name (RFC 6266).

    Programs that know no UTF-8 names (RFC 8187) find what of it is ASCII before it.
    """
    if _SIMPLE.fullmatch(name):
        return f'attachment; filename="{name}"'
    plain = unicodedata.normalize("NFKD", name).encode("ascii", "ignore").decode()
    plain = re.sub(r"[^A-Za-z0-9. ,_]+", "-", plain).strip("- ")
    return f"attachment; filename=\"{plain}\"; filename*=UTF-8''{quote(name, safe='!#$&+^`|~')}"
