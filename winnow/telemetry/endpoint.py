"""The HTTP endpoint that Prometheus fetches metrics from.

It runs in a thread with its own event loop, so that writing the page delays no call. A connection
that sends nothing is closed after some seconds; where there are too many, the oldest is closed. The
server of prometheus_client gives each connection a thread for ever.
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

_OPEN = "application/openmetrics-text"


def exposition(registry: CollectorRegistry, accept: str = "") -> tuple[str, bytes]:
    """The content type and the text of the page; `accept` is the header of that name.

    Only OpenMetrics has exemplars, which lead from a histogram to traces; Prometheus asks for it.
    """
    if _OPEN in accept:
        page: bytes = openmetrics.generate_latest(registry)  # type: ignore[no-untyped-call]
        return openmetrics.CONTENT_TYPE_LATEST, page
    return CONTENT_TYPE_LATEST, generate_latest(registry)


_SECONDS = 5.0
"""Seconds that a request and its reply may take."""
_MOST = 128
"""Connections at once."""
_LONGEST = 16 * 1024
"""Bytes of a request."""
_ACCEPT = re.compile(rb"\r\naccept:([^\r]*)", re.IGNORECASE)


class MetricsEndpoint:
    """Serves the metrics of a registry at every path."""

    def __init__(
        self, registry: CollectorRegistry, most: int = _MOST, seconds: float = _SECONDS
    ) -> None:
        """`most`: connections at once; `seconds`: that each may take."""
        self._registry, self._most, self._seconds = registry, most, seconds
        self._open: dict[asyncio.StreamWriter, None] = {}
        """The oldest first."""

    def start(self, host: str, port: int) -> int:
        """Listens, and serves in the background until the process ends; returns the port. Raises
        OSError if the address cannot be bound.
        """
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.create_server((host, port), family=family, backlog=self._most)
        bound = int(listening.getsockname()[1])
        run = threading.Thread(
            target=asyncio.run, args=(self._serve(listening),), name="metrics", daemon=True
        )
        run.start()
        return bound

    async def _serve(self, listening: socket.socket) -> None:
        server = await asyncio.start_server(self._reply, sock=listening, limit=_LONGEST)
        await server.serve_forever()

    async def _reply(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._open[writer] = None
        if len(self._open) > self._most:
            oldest = next(iter(self._open))
            del self._open[oldest]
            oldest.transport.abort()
        writer.transport.set_write_buffer_limits(
            0
        )  # or a client that does not read would go unnoticed
        try:
            with contextlib.suppress(
                TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError
            ):
                async with asyncio.timeout(self._seconds):
                    request = await reader.readuntil(b"\r\n\r\n")
                    writer.write(self._page(request))
                    await writer.drain()
        finally:
            self._open.pop(writer, None)
            # a close would wait until a client that does not read takes the rest of the page
            writer.transport.abort()

    def _page(self, request: bytes) -> bytes:
        if not request.startswith(b"GET "):
            return b"HTTP/1.1 405 Method Not Allowed\r\nContent-Length: 0\r\n\r\n"
        accepted = _ACCEPT.search(request)
        kind, page = exposition(self._registry, accepted[1].decode("latin-1") if accepted else "")
        head = (
            f"HTTP/1.1 200 OK\r\nContent-Type: {kind}\r\n"
            f"Content-Length: {len(page)}\r\nConnection: close\r\n\r\n"
        )
        return head.encode() + page


def describe_process(registry: CollectorRegistry) -> None:
    """Adds `process_*`, `python_*` and `winnow_build_info`; once, to one registry of a process."""
    # a series beside every other, which nobody asks for
    disable_created_metrics()  # type: ignore[no-untyped-call]
    ProcessCollector(registry=registry)
    PlatformCollector(registry=registry)
    GCCollector(registry=registry)
    build = Info("winnow_build", "The versions that run; always 1", registry=registry)
    build.info({"version": running_version(), "grpc": metadata.version("grpcio")})
