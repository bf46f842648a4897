"""Has a front take calls by HTTP, too."""

from winnow.address import Address
from winnow.inference.fair_threads import FairThreads
from winnow.packaged import running_version
from winnow.rpc.service import Listener
from winnow.security.serving import http_context
from winnow.stateless.composing.front import Front, Part
from winnow.stateless.http.app import application
from winnow.stateless.http.connection_limiter import ConnectionLimiter, HttpMetrics
from winnow.stateless.http.docs import docs
from winnow.stateless.http.endpoint import Edge
from winnow.stateless.http.hosts import host_check
from winnow.stateless.http.json_text import JsonText
from winnow.stateless.http.outside import Outside
from winnow.stateless.http.probes import Readiness, probes
from winnow.stateless.http.server import HttpServer
from winnow.stateless.page.routes import routes
from winnow.telemetry.endpoint import register_process_metrics


def serve_http(front: Front) -> Part:
    """A server of the calls that the parts of the front have told of by now."""
    settings, registry, gate = front.settings, front.registry, front.access.gate
    metrics, readiness = HttpMetrics(registry), Readiness()
    aside = FairThreads(1, "json")
    front.stack.callback(aside.close)
    interceptor = front.interceptor
    edge = Edge(
        gate=gate,
        finished=interceptor.record_call,
        json=JsonText(aside),
        readiness=readiness,
        tracer=interceptor.tracer,
    )
    further = probes(readiness, registry, gate)
    if settings.http_pages:
        further += [*docs(front.http_operations, running_version()), *routes()]
    if not settings.metrics_listen:
        register_process_metrics(registry)
    listen_host, needs_keys = Address.parse(settings.http_listen).host, settings.keys is not None
    is_ours = host_check(listen_host, settings.http_hosts, needs_keys)
    app = Outside(application(front.http_operations, edge, further), readiness, is_ours, metrics)
    certificates = front.access.security.certificates
    tls = http_context(certificates) if certificates else None
    server = HttpServer(
        app, readiness, ConnectionLimiter(settings.http_connections, metrics), tls=tls
    )
    return Part(servers=[Listener(server, settings.http_listen)])
