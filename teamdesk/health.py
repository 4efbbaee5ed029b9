"""Is it alive, is it ready, how is it doing: for load balancers and monitoring.

``/healthz``: this process answers. ``/readyz``: database, Redis, dispatcher and workers are well;
503 names what is not. ``/metrics``: Prometheus text, for whom ``exposition.may_read`` lets.
"""

from django.conf import settings
from django.http import HttpResponse, HttpResponseNotFound, JsonResponse
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, generate_latest

from teamdesk.exposition import may_read, registry_of_processes
from teamdesk.measures import LedgerCollector
from teamdesk.readiness import readiness


class ProbeMiddleware:
    """Answers probes before anything looks at the Host header or redirects to HTTPS: load balancers
    call a node by its address, which ALLOWED_HOSTS does not list."""

    def __init__(self, get_response):
        self.get_response = get_response

    def __call__(self, request):
        view = PROBES.get(request.path_info)
        return view(request) if view else self.get_response(request)


@require_safe
def healthz(request):
    """200: the process answers. Touches nothing else, so a database fault restarts no web node."""
    return HttpResponse("ok\n", content_type="text/plain", headers=_NEVER_STORED)


@require_safe
def readyz(request):
    """200 ``{"ready": true, …}``, or 503 with each unwell part's reason in place of its "ok".

    ``warnings``, if there are any, names parts that are late and not broken: another web node would
    be no faster.
    """
    found = readiness()
    answer = {"ready": found.is_ready, **found.parts}
    if found.warnings:
        answer["warnings"] = found.warnings
    return JsonResponse(answer, status=200 if found.is_ready else 503, headers=_NEVER_STORED)


@require_safe
def metrics(request):
    """Prometheus text. A part that cannot be measured is left out and its ``…_up`` is 0."""
    proxied = {"X-Forwarded-For", "Forwarded"} & set(request.headers)
    if not may_read(
        request.META.get("REMOTE_ADDR", ""),
        request.headers.get("Authorization", ""),
        is_proxied=bool(settings.SECURE_PROXY_SSL_HEADER or proxied),
    ):
        return HttpResponseNotFound(headers=_NEVER_STORED)
    registry = registry_of_processes()
    registry.register(LedgerCollector())
    return HttpResponse(
        generate_latest(registry), content_type=CONTENT_TYPE_LATEST, headers=_NEVER_STORED
    )


PROBES = {"/healthz": healthz, "/readyz": readyz, "/metrics": metrics}

_NEVER_STORED = {"Cache-Control": "no-store"}
