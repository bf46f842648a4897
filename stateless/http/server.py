"""An HTTP server that runs in the current event loop, and starts and drains like a gRPC server.

uvicorn reads and writes HTTP. Its own server is not used: it takes signals for itself, wakes up ten
times a second, and waits for callers that do not take their replies.
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
from winnow.stateless.http.connection import HttpConnection, Requests
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
        """Binds nothing yet.

        `readiness` tells `app` whether the server is ready; `tls`: None for plain text; `age`:
        seconds after which a connection over TLS ends.
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
        self._requests = Requests()
        self._acceptor: Acceptor | None = None

    async def start(self, address: str) -> int:
        """Listens, not ready; returns the port.

        Raises:
            UnavailableError: the address cannot be bound.

        """
        try:
            self._acceptor = Acceptor(Address.parse(address), self._came)
        except OSError as error:
            raise UnavailableError(f"cannot listen on {address}: is it in use?") from error
        return self._acceptor.port

    async def set_serving(self, ready: bool) -> None:
        """Changes the reply of /readyz."""
        self._readiness.say(ready)

    async def drain(self, grace: float) -> None:
        """Reports not ready, closes the listener, and waits up to `grace` seconds for running
        requests.

        Callers without a reply by then are cut off, and their work is cancelled.
        """
        self._readiness.close()
        if self._acceptor is None:
            return
        self._acceptor.close()
        await self._limiter.leave(grace)
        await self._requests.end()

    def _came(self, opened: socket.socket) -> None:
        connection = HttpConnection(self._limiter, self._config, self._requests, self._age)
        connection.arrive(opened, self._tls)
