"""Wraps the ASGI application of a front, for requests of every path.

Checks the Host header, adds request ids and the headers of every reply, and gives up callers that
do not take their reply.
"""

import asyncio
from collections.abc import Callable
from email.utils import formatdate
from http import HTTPStatus

import structlog
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from winnow import caller
from winnow.quoting import quoted
from winnow.rpc import request_id
from winnow.stateless.http.connection import HttpConnection, connection_of
from winnow.stateless.http.connection_limiter import TAKING_SECONDS, HttpMetrics
from winnow.stateless.http.headers import ALWAYS, Headers, find, text_of
from winnow.stateless.http.probes import Readiness
from winnow.stateless.http.problems import HttpRefusedError, response_of
from winnow.stateless.http.receiving import until_gone

_log = structlog.get_logger("stateless.http")
_UNREAD = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.REQUEST_ENTITY_TOO_LARGE)
"""Statuses of replies to requests that were not read to their end."""
IsOurs = Callable[[str], bool]
"""Whether a front may be called by the name in a Host header."""


class Outside:
    """An ASGI application around all others."""

    def __init__(
        self,
        app: ASGIApp,
        readiness: Readiness,
        is_ours: IsOurs,
        metrics: HttpMetrics,
        *,
        taking: float = TAKING_SECONDS,
    ) -> None:
        """`taking`: longest time, in seconds, until a caller has received a part of its reply."""
        self._app, self._readiness, self._is_ours = app, readiness, is_ours
        self._metrics, self._taking = metrics, taking

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serves one request."""
        connection, headers = connection_of(scope), text_of(scope["headers"])
        structlog.contextvars.clear_contextvars()
        chosen = request_id.accept(headers)
        caller.forget()  # uvicorn begins a request in the context of the one before it
        connection.began()

        async def reply(event: Message) -> None:
            if event["type"] == "http.response.start":
                self._complete(event, chosen, connection)
            try:
                async with asyncio.timeout(self._taking):
                    await send(event)
            except TimeoutError:
                await self._give_up(connection, receive)

        try:
            await self._serve(headers)(scope, receive, reply)
        except Exception as error:  # noqa: BLE001 (a mistake in a page)
            _log.error("request failed", error=str(error), exc_info=error)
        finally:
            connection.ended()

    def _serve(self, headers: Headers) -> ASGIApp:
        host = find(headers, "host")
        if self._is_ours(host):
            return self._app
        wrong = f"{quoted(host)} is no name of this front: add it to --http-hosts"
        error = HttpRefusedError(HTTPStatus.MISDIRECTED_REQUEST, "host", wrong)
        return response_of(error, request_id.current())

    def _complete(self, event: Message, chosen: str, connection: HttpConnection) -> None:
        """Adds the headers that every reply has."""
        headers = MutableHeaders(scope=event)
        for name, value in ALWAYS.items():
            headers.setdefault(name, value)
        headers["date"] = formatdate(usegmt=True)
        headers[request_id.KEY] = chosen
        if self._readiness.leaving or connection.old or event["status"] in _UNREAD:
            headers["connection"] = "close"

    async def _give_up(self, connection: HttpConnection, receive: Receive) -> None:
        self._metrics.ended.labels("unread").inc()
        connection.abort()
        await until_gone(receive)
