"""The outermost ASGI application of a front.

The application checks the Host header and adds a request id and default headers to every reply. It
disconnects callers that do not read their reply.
"""

import asyncio
from collections.abc import Callable, Mapping
from email.utils import formatdate
from http import HTTPStatus

import structlog
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from winnow import caller, reply_headers
from winnow.quoting import quoted
from winnow.rpc import request_id
from winnow.stateless.http.connection import HttpConnection, connection_of
from winnow.stateless.http.connection_limiter import REPLY_SECONDS, HttpMetrics
from winnow.stateless.http.headers import DEFAULT_HEADERS, Headers, header_value, text_of
from winnow.stateless.http.probes import Readiness
from winnow.stateless.http.problems import HttpRefusedError, response_of
from winnow.stateless.http.receiving import until_disconnected

_log = structlog.get_logger("stateless.http")
_BODY_UNREAD = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
"""Statuses of replies to requests whose body was not read completely."""
HostCheck = Callable[[str], bool]
"""Returns whether a Host header is allowed."""


class OuterApp:
    """Wraps the application of a front in the checks and headers that every request needs."""

    def __init__(
        self,
        app: ASGIApp,
        readiness: Readiness,
        is_allowed_host: HostCheck,
        metrics: HttpMetrics,
        *,
        reply_timeout: float = REPLY_SECONDS,
    ) -> None:
        """`reply_timeout`: seconds in which a caller must receive each part of its reply."""
        self._app, self._readiness, self._is_allowed_host = app, readiness, is_allowed_host
        self._metrics, self._reply_timeout = metrics, reply_timeout

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        connection, headers = connection_of(scope), text_of(scope["headers"])
        structlog.contextvars.clear_contextvars()
        current_id = request_id.accept_or_create(headers)
        caller.forget()  # uvicorn starts a request in the context of the previous request
        connection.start_request()
        added = reply_headers.begin()

        async def reply(event: Message) -> None:
            if event["type"] == "http.response.start":
                added[request_id.KEY] = current_id
                self._add_headers(event, added, connection)
            try:
                async with asyncio.timeout(self._reply_timeout):
                    await send(event)
            except TimeoutError:
                await self._disconnect(connection, receive)

        try:
            await self._app_for(headers)(scope, receive, reply)
        except Exception as error:  # noqa: BLE001 (a bug must not end the server)
            _log.error("request failed", error=str(error), exc_info=error)
        finally:
            connection.end_request()

    def _app_for(self, headers: Headers) -> ASGIApp:
        host = header_value(headers, "host")
        if self._is_allowed_host(host):
            return self._app
        problem = f"{quoted(host)} is not an allowed host: add it to --http-hosts"
        error = HttpRefusedError(HTTPStatus.MISDIRECTED_REQUEST, "host", problem)
        return response_of(error, request_id.current())

    def _add_headers(
        self, event: Message, added: Mapping[str, str], connection: HttpConnection
    ) -> None:
        """Adds the headers of every reply, and those in `added`."""
        headers = MutableHeaders(scope=event)
        for name, value in DEFAULT_HEADERS.items():
            headers.setdefault(name, value)
        headers["date"] = formatdate(usegmt=True)
        headers.update(added)
        if self._readiness.leaving or connection.is_old or event["status"] in _BODY_UNREAD:
            headers["connection"] = "close"

    async def _disconnect(self, connection: HttpConnection, receive: Receive) -> None:
        self._metrics.ended.labels("unread").inc()
        connection.abort()
        await until_disconnected(receive)
