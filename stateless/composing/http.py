"""Composes the HTTP server of a front."""

from functools import partial
from importlib.util import find_spec

from starlette.routing import BaseRoute, Route

from winnow.address import Address
from winnow.inference.fair_threads import FairThreads
from winnow.packaged import running_version
from winnow.rpc.service import Listener
from winnow.security.serving import http_context
from winnow.stateless.composing.front import Front, FrontPart
from winnow.stateless.http.app import application, with_index
from winnow.stateless.http.connection_limiter import ConnectionLimiter, HttpMetrics
from winnow.stateless.http.docs import docs_routes
from winnow.stateless.http.endpoint import EndpointContext
from winnow.stateless.http.hosts import host_check
from winnow.stateless.http.json_text import JsonText
from winnow.stateless.http.outer_app import OuterApp
from winnow.stateless.http.probes import Readiness, probe_routes
from winnow.stateless.http.server import HttpServer
from winnow.stateless.mcp.agent_server import AgentServer, manager_of
from winnow.stateless.mcp.endpoint import PATH, McpEndpoint
from winnow.stateless.mcp.front_calls import FrontCalls
from winnow.stateless.page.routes import page_routes, route_to_docs
from winnow.telemetry.endpoint import register_process_metrics

_AGENT_CALLS = ("Answer", "ReadTexts")
"""Calls of which a front serves at least one, if it serves agents."""


def serve_http(front: Front) -> FrontPart:
    """Opens the HTTP server of the front. Call it after all parts have added their operations."""
    settings, registry, gate = front.settings, front.registry, front.access.gate
    metrics, readiness = HttpMetrics(registry), Readiness()
    json_thread = FairThreads(1, "json")
    front.stack.callback(json_thread.close)
    interceptor = front.interceptor
    context = EndpointContext(
        gate=gate,
        record_call=interceptor.record_call,
        json=JsonText(json_thread),
        readiness=readiness,
        tracer=interceptor.tracer,
    )
    extra_routes: list[BaseRoute] = [*probe_routes(readiness, registry, gate)]
    extra_routes += (agents := _agent_routes(front, context, json_thread))
    if settings.http_pages:
        docs = docs_routes(front.http_operations, running_version(), serves_agents=bool(agents))
        answers = any(each.name == "Answer" for each in front.http_operations)
        extra_routes += [*docs, *(page_routes() if answers else [route_to_docs()])]
    if not settings.metrics_listen:
        register_process_metrics(registry)
    listen_host, needs_keys = Address.parse(settings.http_listen).host, settings.keys is not None
    is_allowed_host = host_check(listen_host, settings.http_hosts, needs_keys)
    app = OuterApp(
        application(front.http_operations, context, extra_routes),
        readiness,
        is_allowed_host,
        metrics,
    )
    certificates = front.access.security.certificates
    tls = http_context(certificates) if certificates else None
    server = HttpServer(
        app, readiness, ConnectionLimiter(settings.http_connections, metrics), tls=tls
    )
    return FrontPart(servers=[Listener(server, settings.http_listen)])


def _agent_routes(front: Front, context: EndpointContext, json_threads: FairThreads) -> list[Route]:
    """Returns the routes of the MCP server; none if its package or the operations are missing."""
    operations = {each.name: each for each in front.http_operations}
    scopes = [operations[name].scope for name in _AGENT_CALLS if name in operations]
    if find_spec("mcp") is None or not scopes:
        return []
    calls = FrontCalls(front.http_operations, json_threads, front.interceptor.record_call)
    server = AgentServer(partial(manager_of, calls, operations))
    front.stack.push_async_callback(server.close)
    endpoint = McpEndpoint(server, context, scopes, front.settings.http_hosts)
    paths = (PATH, with_index(PATH))
    return [Route(path, endpoint, methods=["POST"], name="Mcp") for path in paths]
