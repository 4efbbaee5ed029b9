"""Who may read metrics, and the small server with which workers and beat show theirs."""

import ipaddress
import logging
import os
import threading
from wsgiref.simple_server import WSGIRequestHandler, make_server

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.utils.crypto import constant_time_compare
from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.exposition import ThreadingWSGIServer
from prometheus_client.multiprocess import MultiProcessCollector

from tasks import metrics

logger = logging.getLogger(__name__)

FOLDER = "PROMETHEUS_MULTIPROC_DIR"


def registry_of_processes() -> CollectorRegistry:
    """What this process counted; with PROMETHEUS_MULTIPROC_DIR, all that share the folder."""
    metrics.prepare()
    registry = CollectorRegistry()
    if FOLDER in os.environ:
        MultiProcessCollector(registry)
    else:
        for metric in metrics.ALL:
            registry.register(metric)
    return registry


def may_read(remote_address: str, authorization: str, is_proxied: bool) -> bool:
    """With TEAMDESK_METRICS_TOKEN: whoever sends it as a bearer token. Without: this machine alone,
    and not behind a proxy, where every visitor comes from the proxy's address."""
    token = settings.TEAMDESK_METRICS_TOKEN
    if token:
        return constant_time_compare(authorization, f"Bearer {token}")
    if is_proxied:
        return False
    try:
        return ipaddress.ip_address(remote_address).is_loopback
    except ValueError:
        return False


def refuse_to_show_one_of_several() -> None:
    """Raises ImproperlyConfigured where a worker's server would not see its processes' counts."""
    if settings.TEAMDESK_METRICS_PORT and FOLDER not in os.environ:
        raise ImproperlyConfigured(
            f"TEAMDESK_METRICS_PORT needs {FOLDER}, an empty folder: a worker's processes count "
            "there together."
        )


def serve() -> None:
    """``/metrics`` on TEAMDESK_METRICS_PORT, from a thread; nothing without that setting. A port
    that is taken is logged and costs no work."""
    port, address = settings.TEAMDESK_METRICS_PORT, settings.TEAMDESK_METRICS_ADDRESS
    if not port:
        return
    metrics.prepare()
    try:
        server = make_server(address, port, _guarded, ThreadingWSGIServer, _Quiet)
    except OSError as error:
        logger.error("No metrics on %s port %d: %s", address, port, error)
        return
    threading.Thread(target=server.serve_forever, name="metrics", daemon=True).start()
    logger.info("Metrics on http://%s:%d/metrics", address, server.server_port)


def _guarded(environ, start_response):
    allowed = may_read(
        environ.get("REMOTE_ADDR", ""),
        environ.get("HTTP_AUTHORIZATION", ""),
        is_proxied="HTTP_X_FORWARDED_FOR" in environ or "HTTP_FORWARDED" in environ,
    )
    if environ["PATH_INFO"] != "/metrics" or not allowed:
        start_response("404 Not Found", [("Content-Type", "text/plain")])
        return [b""]
    return make_wsgi_app(registry_of_processes())(environ, start_response)


class _Quiet(WSGIRequestHandler):
    def log_message(self, *args):
        """A scrape every few seconds is no news."""
