"""The health service of a server.

Not the servicer of grpcio-health-checking (1.85). There, once a watcher leaves, the others are told
nothing more, and a watcher that stays delays the end of the server for its whole grace.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from winnow.quoting import quoted

_Status = health_pb2.HealthCheckResponse.ServingStatus


LIVE = "live"
"""A name that is SERVING while the process replies, also when it loads or leaves.

It decides whether the process is restarted; the other names decide whether it gets calls."""


class Health(health_pb2_grpc.HealthServicer):  # type: ignore[misc]
    """One status for the server as a whole (the empty name) and its services; another for
    `LIVE`.
    """

    def __init__(self, services: Iterable[str]) -> None:
        """Begins as NOT_SERVING."""
        self._names = {"", LIVE, *services}
        self._ready = self._closed = False
        self._changed = asyncio.Event()

    def serving(self, ready: bool) -> None:
        """Changes the status, unless the service was closed."""
        self._ready = ready and not self._closed
        self._tell()

    def close(self) -> None:
        """NOT_SERVING for ever; watchers are told, and their calls end."""
        self._ready, self._closed = False, True
        self._tell()

    async def Check(  # noqa: N802 (the name in the proto)
        self, request: health_pb2.HealthCheckRequest, context: Any
    ) -> health_pb2.HealthCheckResponse:
        """Returns the service's current status, or NOT_FOUND if this server lacks it."""
        if request.service not in self._names:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"no service {quoted(request.service)}")
        return health_pb2.HealthCheckResponse(status=self._status(request.service))

    async def Watch(  # noqa: N802
        self, request: health_pb2.HealthCheckRequest, context: Any
    ) -> AsyncIterator[health_pb2.HealthCheckResponse]:
        """Returns the current status, then every change of it."""
        told = None
        while True:
            closed, changed, status = self._closed, self._changed, self._status(request.service)
            if status != told:
                yield health_pb2.HealthCheckResponse(status=status)
                told = status
            if closed:
                return
            await changed.wait()

    def _status(self, service: str) -> int:
        if service not in self._names:
            return int(_Status.SERVICE_UNKNOWN)
        serving = self._ready or service == LIVE
        return int(_Status.SERVING if serving else _Status.NOT_SERVING)

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
