"""What a server says of itself by gRPC's health protocol.

Not the servicer of grpcio-health-checking (1.85): there, once a watcher leaves, the others are told
nothing more, and a watcher that stays holds up the end of the server for its whole grace.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from winnow.quoting import quoted

_Status = health_pb2.HealthCheckResponse.ServingStatus


LIVE = "live"
"""A name that is SERVING for as long as the process answers at all, also while it loads and leaves:
what decides whether it is started again, where the others decide whether it is asked."""


class Health(health_pb2_grpc.HealthServicer):  # type: ignore[misc]
    """One state for the server as a whole (the empty name) and for each of its services; another
    one for `LIVE`.
    """

    def __init__(self, services: Iterable[str]) -> None:
        """NOT_SERVING at first."""
        self._names = {"", LIVE, *services}
        self._ready = self._closed = False
        self._changed = asyncio.Event()

    def serving(self, ready: bool) -> None:
        """Changes what is said, unless it was closed."""
        self._ready = ready and not self._closed
        self._tell()

    def close(self) -> None:
        """NOT_SERVING for ever; those who watch are told, and their calls end."""
        self._ready, self._closed = False, True
        self._tell()

    async def Check(  # noqa: N802 (the name in the proto)
        self, request: health_pb2.HealthCheckRequest, context: Any
    ) -> health_pb2.HealthCheckResponse:
        """What is so now; NOT_FOUND for a service that is not here."""
        if request.service not in self._names:
            await context.abort(grpc.StatusCode.NOT_FOUND, f"no service {quoted(request.service)}")
        return health_pb2.HealthCheckResponse(status=self._status(request.service))

    async def Watch(  # noqa: N802
        self, request: health_pb2.HealthCheckRequest, context: Any
    ) -> AsyncIterator[health_pb2.HealthCheckResponse]:
        """What is so now, then every change of it."""
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
