"""An HTTP server that runs in the current event loop, and starts and drains like a gRPC server.

uvicorn parses and writes HTTP. Its own server is not used: it handles signals itself, wakes up ten
times a second, and waits for callers that do not read their replies.
"""

import math
import socket
import ssl

from starlette.types import ASGIApp
from uvicorn.config import Config

from winnow.address import Address
from winnow.errors import UnavailableError
from winnow.rpc.server import MAX_CONNECTION_SECONDS
from winnow.stateless.http.accepting import Acceptor
from winnow.stateless.http.connection import HttpConnection, RunningRequests
from winnow.stateless.http.connection_limiter import ConnectionLimiter
from winnow.stateless.http.probes import Readiness

_FOREVER = 86_400
"""Seconds; the connection limiter ends idle connections."""


class HttpServer:
    """Serves an ASGI application on one port."""

    def __init__(
        self,
        app: ASGIApp,
        readiness: Readiness,
        limiter: ConnectionLimiter,
        *,
        tls: ssl.SSLContext | None = None,
        age: float = MAX_CONNECTION_SECONDS,
    ) -> None:
        """Creates a server that is not bound yet.

        `readiness` is shared with `app`; `tls`: None for plain text; `age`: seconds after which a
        connection over TLS ends.
        """
        self._age = math.inf if tls is None else age
        self._readiness, self._limiter, self._tls = readiness, limiter, tls
        self._config = Config(
            app,
            loop="none",
            http="h11",
            ws="none",
            lifespan="off",
            interface="asgi3",
            log_config=None,
            log_level="error",  # else a line for all bytes that are no HTTP
            access_log=False,
            proxy_headers=False,
            server_header=False,
            date_header=False,
            timeout_keep_alive=_FOREVER,
        )
        self._config.load()
        self._requests = RunningRequests()
        self._acceptor: Acceptor | None = None

    async def start(self, address: str) -> int:
        """Starts to listen, not ready yet; returns the port.

        Raises:
            UnavailableError: the address cannot be bound.

        """
        try:
            self._acceptor = Acceptor(Address.parse(address), self._open_connection)
        except OSError as error:
            raise UnavailableError(f"cannot listen on {address}: is it in use?") from error
        return self._acceptor.port

    async def set_serving(self, ready: bool) -> None:
        """Changes the reply of /readyz."""
        self._readiness.set_ready(ready)

    async def drain(self, grace: float) -> None:
        """Reports not ready, closes the listener, and waits up to `grace` seconds for running
        requests.

        Callers without a reply by then are disconnected, and their work is cancelled.
        """
        self._readiness.close()
        if self._acceptor is None:
            return
        self._acceptor.close()
        await self._limiter.drain(grace)
        await self._requests.wait()

    def _open_connection(self, opened: socket.socket) -> None:
        connection = HttpConnection(self._limiter, self._config, self._requests, self._age)
        connection.open(opened, self._tls)
