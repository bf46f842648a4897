"""The health service of a server.

This replaces the servicer of grpcio-health-checking (1.85). There, once a watcher disconnects, the
other watchers get no more updates, and each watcher delays the end of the server by the full grace.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from winnow.quoting import quoted

_Status = health_pb2.HealthCheckResponse.ServingStatus


LIVE = "live"
"""The service name of the liveness check: SERVING while the process replies, even if it loads or
drains. Supervisors restart the process by this name; callers route calls by the other names.
"""


class Health(health_pb2_grpc.HealthServicer):  # type: ignore[misc]
    """The health service: one status for the server (the empty name) and all its services, and a
    separate one for `LIVE`.
    """

    def __init__(self, services: Iterable[str]) -> None:
        """The initial status is NOT_SERVING."""
        self._names = {"", LIVE, *services}
        self._ready = self._closed = False
        self._changed = asyncio.Event()

    def set_serving(self, ready: bool) -> None:
        """Sets the status to SERVING or NOT_SERVING; after `close` it stays NOT_SERVING."""
        self._ready = ready and not self._closed
        self._notify_watchers()

    def close(self) -> None:
        """Sets the status to NOT_SERVING for ever; watchers are notified, and their calls end."""
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
        """Returns the current status, then every change of it."""
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
