"""Is it alive, is it ready, how is it doing: for load balancers and monitoring.

``/healthz``: this process answers. ``/readyz``: database, Redis, dispatcher and workers are well;
503 names what is not. ``/metrics``: Prometheus text; see ``_may_read_metrics`` for who may read it.
"""

import ipaddress
import os

from django.conf import settings
from django.http import HttpResponse, HttpResponseNotFound, JsonResponse
from django.utils.crypto import constant_time_compare
from django.views.decorators.http import require_safe
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector

from tasks import fast_path
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
    if not _may_read_metrics(request):
        return HttpResponseNotFound(headers=_NEVER_STORED)
    registry = CollectorRegistry()
    registry.register(LedgerCollector())
    if "PROMETHEUS_MULTIPROC_DIR" in os.environ:
        MultiProcessCollector(registry)  # several web processes count; one of them answers
    else:
        registry.register(fast_path.failures)
    return HttpResponse(
        generate_latest(registry), content_type=CONTENT_TYPE_LATEST, headers=_NEVER_STORED
    )


PROBES = {"/healthz": healthz, "/readyz": readyz, "/metrics": metrics}

_NEVER_STORED = {"Cache-Control": "no-store"}


def _may_read_metrics(request) -> bool:
    """With TEAMDESK_METRICS_TOKEN: whoever sends it as a bearer token. Without: this machine alone,
    and not behind a proxy, where every visitor comes from the proxy's address."""
    token = settings.TEAMDESK_METRICS_TOKEN
    if token:
        return constant_time_compare(request.headers.get("Authorization", ""), f"Bearer {token}")
    if settings.SECURE_PROXY_SSL_HEADER or {"X-Forwarded-For", "Forwarded"} & set(request.headers):
        return False
    try:
        return ipaddress.ip_address(request.META.get("REMOTE_ADDR", "")).is_loopback
    except ValueError:
        return False
