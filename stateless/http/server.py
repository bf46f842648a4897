"""An HTTP server that runs in the current event loop, and starts and drains like a gRPC server.

uvicorn parses and writes HTTP. The server of uvicorn is not used, because it handles signals
itself, wakes up ten times a second, and waits for callers that do not read their replies.
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
"""uvicorn's idle timeout in seconds. The connection limiter closes idle connections before."""


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
        """Creates a server that does not listen yet.

        `readiness` is shared with `app`. `tls` is None for plain text. `age` is the age in seconds
        after which a client must reconnect over TLS.
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
            log_level="error",  # at lower levels, bytes that are not HTTP would be logged
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
        """Starts listening, and returns the port. The front is not ready yet.

        Raises:
            UnavailableError: the address cannot be bound.

        """
        try:
            self._acceptor = Acceptor(Address.parse(address), self._serve_connection)
        except OSError as error:
            raise UnavailableError(f"cannot listen on {address}: is it in use?") from error
        return self._acceptor.port

    async def set_serving(self, ready: bool) -> None:
        """Sets whether /readyz reports that the front is ready."""
        self._readiness.set_ready(ready)

    async def drain(self, grace: float) -> None:
        """Reports not ready, closes the listener, and waits up to `grace` seconds for running
        requests.

        Then disconnects the callers without a reply, which cancels their work.
        """
        self._readiness.close()
        if self._acceptor is None:
            return
        self._acceptor.close()
        await self._limiter.drain(grace)
        await self._requests.wait()

    def _serve_connection(self, opened: socket.socket) -> None:
        connection = HttpConnection(self._limiter, self._config, self._requests, self._age)
        connection.open(opened, self._tls)
