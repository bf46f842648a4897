"""The health service of a server.

Replaces the servicer of grpcio-health-checking (1.85). In that servicer, once a watcher
disconnects, the other watchers get no more updates, and each watcher delays the server's end by the
full grace.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from winnow.quoting import quoted

_Status = health_pb2.HealthCheckResponse.ServingStatus


LIVE = "live"
"""The service name of the liveness check, which is SERVING even while the process loads or drains.

Supervisors use this name to decide on restarts. Callers use the other names to route calls.
"""


class Health(health_pb2_grpc.HealthServicer):  # type: ignore[misc]
    """The health service. The server (the empty name) and all its services share one status; `LIVE`
    is always SERVING.
    """

    def __init__(self, services: Iterable[str]) -> None:
        """`services`: full names of the server's services. The initial status is NOT_SERVING."""
        self._names = {"", LIVE, *services}
        self._ready = self._closed = False
        self._changed = asyncio.Event()

    def set_serving(self, ready: bool) -> None:
        """Sets the status to SERVING or NOT_SERVING; after `close` it stays NOT_SERVING."""
        self._ready = ready and not self._closed
        self._notify_watchers()

    def close(self) -> None:
        """Sets the status to NOT_SERVING for good, notifies watchers, and ends their calls."""
        self._ready, self._closed = False, True
        self._notify_watchers()

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
        """Yields the current status, then each new status."""
        last_sent = None
        while True:
            closed, changed, status = self._closed, self._changed, self._status(request.service)
            if status != last_sent:
                yield health_pb2.HealthCheckResponse(status=status)
                last_sent = status
            if closed:
                return
            await changed.wait()

    def _status(self, service: str) -> int:
        if service not in self._names:
            return int(_Status.SERVICE_UNKNOWN)
        is_serving = self._ready or service == LIVE
        return int(_Status.SERVING if is_serving else _Status.NOT_SERVING)

    def _notify_watchers(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
