"""Serves `/mcp`: checks key, origin and size of a request, and lets the MCP server answer it."""

from collections.abc import Sequence
from http import HTTPStatus

from starlette.responses import Response
from starlette.types import Receive, Scope

from winnow.deadline import MAX_SECONDS
from winnow.errors import UnavailableError
from winnow.quoting import quoted
from winnow.rpc.bounded_receive import BoundedReceive
from winnow.rpc.server import KIB
from winnow.stateless.http.endpoint import (
    INDEX_PARAMETER,
    MAX_PENDING_BYTES,
    EndpointContext,
    RecordedEndpoint,
    read_body,
)
from winnow.stateless.http.headers import (
    TIMEOUT_HEADER,
    header_value,
    new_deadline_of,
    tenant_of,
    text_of,
)
from winnow.stateless.http.hosts import is_allowed_origin
from winnow.stateless.http.problems import HttpRefusedError
from winnow.stateless.http.receiving import while_connected
from winnow.stateless.mcp.agent_server import AgentServer
from winnow.stateless.mcp.front_calls import McpRequest, current_request

PATH = "/mcp"
MAX_BODY_BYTES = 256 * KIB
"""Maximum size of a message of an agent, in bytes."""


class McpEndpoint(RecordedEndpoint):
    """Serves the MCP server over HTTP. Each request has one message."""

    def __init__(
        self,
        server: AgentServer,
        context: EndpointContext,
        scopes: Sequence[str],
        hosts: Sequence[str],
    ) -> None:
        """`scopes` of which a key needs one; `hosts` whose pages may send requests."""
        super().__init__("Mcp", f"POST {PATH}", context)
        self._server, self._scopes, self._hosts = server, scopes, hosts
        self._bodies = BoundedReceive(MAX_PENDING_BYTES // MAX_BODY_BYTES)

    async def respond(self, scope: Scope, receive: Receive) -> Response:
        """Answers one message. An error before it is read is a problem, as of other paths."""
        context, headers = self._context, text_of(scope["headers"])
        if context.readiness.starting:
            raise UnavailableError("this front is not ready yet: see /readyz, and try again")
        origin = header_value(headers, "origin")
        if not is_allowed_origin(origin, header_value(headers, "host"), self._hosts):
            problem = f"{quoted(origin)} is not an allowed origin: add its host to --http-hosts"
            raise HttpRefusedError(HTTPStatus.FORBIDDEN, "origin", problem)
        client = context.gate(self._scopes[0], headers, others=self._scopes[1:])
        is_limited = bool(header_value(headers, TIMEOUT_HEADER))
        new_deadline = new_deadline_of(headers, MAX_SECONDS) if is_limited else None
        body = await read_body(self._bodies, MAX_BODY_BYTES, headers, receive)
        index = scope.get("path_params", {}).get(INDEX_PARAMETER, "")
        tenant = tenant_of(headers)
        current_request.set(McpRequest(client, new_deadline, index, tenant))
        return await while_connected(self._server.respond(scope, body), receive)
