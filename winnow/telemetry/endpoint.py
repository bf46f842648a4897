"""The HTTP endpoint for Prometheus.

Runs in a thread with its own event loop, so that rendering the page delays no call. A connection is
closed if its request is incomplete after some seconds. If there are too many connections, the
oldest is closed. The server of `prometheus_client` is not used, because each of its connections
keeps a thread for ever.
"""

import asyncio
import contextlib
import re
import socket
import threading
from importlib import metadata

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    GCCollector,
    Info,
    PlatformCollector,
    ProcessCollector,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.openmetrics import exposition as openmetrics

from winnow.packaged import running_version

_OPENMETRICS = "application/openmetrics-text"


def exposition(registry: CollectorRegistry, accept: str = "") -> tuple[str, bytes]:
    """Returns the content type and the text of the metrics page.

    `accept`: the Accept header of the request, with which Prometheus requests OpenMetrics. Only
    OpenMetrics has exemplars, which link histograms to traces.
    """
    if _OPENMETRICS in accept:
        page: bytes = openmetrics.generate_latest(registry)  # type: ignore[no-untyped-call]
        return openmetrics.CONTENT_TYPE_LATEST, page
    return CONTENT_TYPE_LATEST, generate_latest(registry)


_REQUEST_SECONDS = 5.0
"""Time limit of a request and its reply, in seconds."""
_MAX_CONNECTIONS = 128
"""Maximum number of open connections."""
_MAX_REQUEST_BYTES = 16 * 1024
"""Maximum bytes of a request."""
_ACCEPT_HEADER = re.compile(rb"\r\naccept:([^\r]*)", re.IGNORECASE)


class MetricsEndpoint:
    """Serves the metrics of a registry at every path."""

    def __init__(
        self,
        registry: CollectorRegistry,
        max_connections: int = _MAX_CONNECTIONS,
        seconds: float = _REQUEST_SECONDS,
    ) -> None:
        """`max_connections`: limit of open connections; `seconds`: time limit of each one."""
        self._registry, self._max_connections, self._seconds = registry, max_connections, seconds
        self._connections: dict[asyncio.StreamWriter, None] = {}
        """The open connections, the oldest first."""

    def start(self, host: str, port: int) -> int:
        """Serves in the background until the process ends; returns the port.

        Raises OSError if the address cannot be bound.
        """
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family, backlog=self._max_connections)
        bound = int(listening.getsockname()[1])
        run = threading.Thread(
            target=asyncio.run, args=(self._serve(listening),), name="metrics", daemon=True
        )
        run.start()
        return bound

    async def _serve(self, listening: socket.socket) -> None:
        server = await asyncio.start_server(self._reply, sock=listening, limit=_MAX_REQUEST_BYTES)
        await server.serve_forever()

    async def _reply(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._connections[writer] = None
        if len(self._connections) > self._max_connections:
            oldest = next(iter(self._connections))
            del self._connections[oldest]
            oldest.transport.abort()
        writer.transport.set_write_buffer_limits(
            0
        )  # so that `drain` detects clients that do not read
        try:
            with contextlib.suppress(
                TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError
            ):
                async with asyncio.timeout(self._seconds):
                    request = await reader.readuntil(b"\r\n\r\n")
                    writer.write(self._page(request))
                    await writer.drain()
        finally:
            self._connections.pop(writer, None)
            # `close` would wait for clients that do not read the whole page
            writer.transport.abort()

    def _page(self, request: bytes) -> bytes:
        if not request.startswith(b"GET "):
            return b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n"
        accepted = _ACCEPT_HEADER.search(request)
        content_type, page = exposition(
            self._registry, accepted[1].decode("latin-1") if accepted else ""
        )
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\n"
            f"Content-Length: {len(page)}\r\nConnection: close\r\n\r\n"
        )
        return head.encode() + page


def register_process_metrics(registry: CollectorRegistry) -> None:
    """Registers `process_*`, `python_*` and `winnow_build_info`. Call it once per process."""
    # otherwise every counter and histogram has an additional, unused series
    disable_created_metrics()  # type: ignore[no-untyped-call]
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    build = Info("winnow_build", "The version of this process; always 1", registry=registry)
    build.info({"version": running_version(), "grpc": metadata.version("grpcio")})
