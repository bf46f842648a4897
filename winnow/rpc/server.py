"""Builds gRPC servers.

Knows ports, message limits, keepalive, interceptors, reflection and health; knows no service.
"""

import asyncio
import contextlib
from collections.abc import Sequence

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from winnow.errors import UnavailableError
from winnow.heap import IdleTrimmer, trim_function
from winnow.rpc.bounded_receive import BoundedReceive
from winnow.rpc.health import Health
from winnow.rpc.interceptor import CallInterceptor
from winnow.rpc.message_interceptor import MessageInterceptor, Reject
from winnow.rpc.per_address import PerAddressLimit
from winnow.security.from_settings import ServerSecurity
from winnow.security.serving import grpc_credentials
from winnow.uncancelled import run_uncancelled

KIB = 1024
DEFAULT_PENDING_BYTES = 8 * KIB * KIB
"""Default maximum size of all incomplete messages together, in bytes."""
PLAIN_TEXT = ServerSecurity()
MAX_CONNECTION_SECONDS = 3_600
"""Age at which a TLS connection is closed, so that clients reconnect with new certificates."""
_STREAM_END_SECONDS = 0.5
"""Seconds for notifying streams that the server ends."""
_NO_GRACE_LIMIT = 1e8
"""Seconds after which gRPC would cancel running calls by itself, a time that never comes.

The server limits the grace time itself: if the time of gRPC ended while `stop(None)` cancels the
calls, gRPC could cancel the calls of a server that it has freed, and the process would crash
(seen with grpcio 1.85).
"""
_OPTIONS = (
    # otherwise two servers could silently share one port (grpc #19773)
    ("grpc.so_reuseport", 0),
    # otherwise a front node that pings an idle node gets too_many_pings
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    # for clients that do not speak HTTP/2, or have vanished
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    # bytes that a connection may send before they are read; gRPC would raise this to megabytes
    ("grpc.http2.lookahead_bytes", 16 * KIB),
    ("grpc.http2.bdp_probe", 0),
    # off: it counts ended calls until they are cleaned up, so clients within the limit of calls per
    # connection would get UNAVAILABLE
    ("grpc.http.overload_protection", 0),
    # maximum number of calls that wait for a handler, at about 15 KB each; ended calls count, too;
    # beyond this limit gRPC cancels calls of any client, without a message
    ("grpc.server.max_pending_requests", 10_000),
    ("grpc.server.max_pending_requests_hard_limit", 10_000),
)


class Server:
    """A gRPC server with health checks, reflection and a graceful shutdown."""

    def __init__(
        self,
        *,
        services: Sequence[str],
        interceptor: CallInterceptor,
        max_message_bytes: int = 16 * KIB,
        idle_seconds: float = 120.0,
        max_pending_bytes: int = DEFAULT_PENDING_BYTES,
        reject: Reject = lambda _method, _metadata: None,
        max_streams: int | None = None,
        security: ServerSecurity = PLAIN_TEXT,
    ) -> None:
        """Binds nothing yet.

        Args:
            services: full names of the services, such as `winnow.v1.AnswerService`.
            interceptor: counts and logs the calls of these services, and converts their errors.
            max_message_bytes: maximum bytes of one message; a question of 1 000 characters
                takes 4 KB.
            idle_seconds: seconds without a call after which a connection is closed. Also limits
                headers that are never completed, which gRPC would read for ever.
            max_pending_bytes: maximum bytes of all incomplete messages together.
            reject: rejects calls of these services before their messages are read.
            max_streams: maximum number of running calls per connection; further calls wait at the
                client. None for no limit.
            security: certificates, the limit of calls per caller, and whether reflection is on.

        """
        limits = [
            ("grpc.max_receive_message_length", max_message_bytes),
            ("grpc.max_connection_idle_ms", int(idle_seconds * 1e3)),
        ]
        if max_streams is not None:
            limits.append(("grpc.max_concurrent_streams", max_streams))
        if security.certificates is not None:
            limits.append(("grpc.max_connection_age_ms", MAX_CONNECTION_SECONDS * 1_000))
        self._messages = MessageInterceptor(
            BoundedReceive(max_pending_bytes // max_message_bytes),
            reject,
            IdleTrimmer(trim_function()).count_call,
            PerAddressLimit(security.peer_calls),
        )
        self._certificates = security.certificates
        self.services = services
        self.grpc = grpc.aio.server(
            interceptors=[self._messages, interceptor], options=(*_OPTIONS, *limits)
        )
        self._stopping: asyncio.Task[None] | None = None
        self._cancelling = asyncio.Lock()
        self._health = Health(services)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self.grpc)
        if security.reflection:
            names = (*services, health_pb2.DESCRIPTOR.services_by_name["Health"].full_name)
            reflection.enable_server_reflection((*names, reflection.SERVICE_NAME), self.grpc)

    async def start(self, address: str) -> int:
        """Binds the address and starts the server as NOT_SERVING; returns the port.

        Raises UnavailableError if the address cannot be bound.
        """
        port, cause = 0, None
        try:
            port = self._bind(address)
        except RuntimeError as error:
            cause = error
        if port == 0:
            raise UnavailableError(f"cannot listen on {address}: is it in use?") from cause
        await self.grpc.start()
        return port

    def _bind(self, address: str) -> int:
        """Binds the address; returns the port. On failure, returns 0 or raises RuntimeError."""
        if self._certificates is None:
            return int(self.grpc.add_insecure_port(address))
        return int(self.grpc.add_secure_port(address, grpc_credentials(self._certificates)))

    async def set_serving(self, ready: bool) -> None:
        """Sets the health of every service and of the server as a whole (the empty name)."""
        self._health.set_serving(ready)

    async def drain(self, grace: float) -> None:
        """Reports NOT_SERVING, accepts no new calls, and gives running ones up to `grace` seconds.

        Does not wait for streams without an end: health watchers are notified, and a stream of
        messages gets an error at its next message. A caller that is cancelled ends the grace time.
        """
        self._health.close()
        self._messages.end_streams()
        if self._stopping is None:
            self._stopping = asyncio.create_task(self.grpc.stop(_NO_GRACE_LIMIT))
        try:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(grace):
                    await self._wait_for_calls(self._stopping)
        finally:
            await run_uncancelled(self._cancel_calls(self._stopping))

    async def _cancel_calls(self, stopping: asyncio.Task[None]) -> None:
        """Cancels the calls that still run, and waits until their handlers have cleaned up."""
        async with self._cancelling:  # the second of two at once could use a server that is freed
            await self.grpc.stop(None)
            await stopping
        await self._messages.wait_for_handlers()

    async def _wait_for_calls(self, stopping: asyncio.Task[None]) -> None:
        """Waits until no calls run, or only health watches and reflection, which may not end."""
        while not stopping.done():
            idle = asyncio.create_task(self._messages.wait_until_idle())
            try:
                await asyncio.wait({stopping, idle}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                idle.cancel()
            await asyncio.wait({stopping}, timeout=_STREAM_END_SECONDS)
            if not self._messages.running_calls:  # no other call has begun during the wait
                return
