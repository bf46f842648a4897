"""Builds gRPC servers.

Knows ports, message limits, keepalive, interceptors, reflection and health; knows no service.
"""

import asyncio
from collections.abc import Sequence

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection

from winnow.errors import UnavailableError
from winnow.heap import IdleTrimmer, trimming
from winnow.rpc.bounded_receive import BoundedReceive
from winnow.rpc.health import Health
from winnow.rpc.interceptor import CallInterceptor
from winnow.rpc.message_interceptor import MessageInterceptor, Reject
from winnow.rpc.per_address import PerAddressLimit
from winnow.security.from_settings import ServerSecurity
from winnow.security.serving import grpc_credentials

KIB = 1024
ARRIVING = 8 * KIB * KIB
"""Bytes of all incomplete messages together, unless a service says otherwise."""
PLAIN_TEXT = ServerSecurity()
AGE = 3_600
"""Seconds after which a connection is replaced, with the certificates of that time."""
_FAREWELL = 0.5
"""Seconds for streams to learn that the server ends."""
_OPTIONS = (
    # two servers would silently share one port (grpc #19773)
    ("grpc.so_reuseport", 0),
    # or a front that pings an idle node is told too_many_pings
    ("grpc.http2.min_ping_interval_without_data_ms", 5_000),
    ("grpc.keepalive_permit_without_calls", 1),
    # a client that does not speak HTTP/2, or has vanished
    ("grpc.server_handshake_timeout_ms", 10_000),
    ("grpc.keepalive_time_ms", 60_000),
    ("grpc.keepalive_timeout_ms", 20_000),
    # what a connection may send before it is read; gRPC would raise it to megabytes by itself
    ("grpc.http2.lookahead_bytes", 16 * KIB),
    ("grpc.http2.bdp_probe", 0),
    # it counts calls that have ended until they are put away: clients that keep to the limit of
    # calls on a connection would be told UNAVAILABLE
    ("grpc.http.overload_protection", 0),
    # calls that no handler has taken yet, at some 15 KB each, immediately ended ones included;
    # beyond this gRPC cancels calls of any client, without a message
    ("grpc.server.max_pending_requests", 10_000),
    ("grpc.server.max_pending_requests_hard_limit", 10_000),
)


class Server:
    """A gRPC server with health, reflection and an orderly end."""

    def __init__(
        self,
        *,
        services: Sequence[str],
        interceptor: CallInterceptor,
        largest: int = 16 * KIB,
        idle: float = 120.0,
        arriving: int = ARRIVING,
        reject: Reject = lambda _method, _metadata: None,
        streams: int | None = None,
        security: ServerSecurity = PLAIN_TEXT,
    ) -> None:
        """Binds nothing yet.

        Args:
            services: full names, such as `winnow.v1.AnswerService`.
            interceptor: counts and logs their calls, and converts their errors.
            largest: most bytes of a message; a question of 1 000 characters has 4 KB.
            idle: seconds without a call after which a connection is closed. A client that sends
                headers without an end has no call; gRPC would read them for ever.
            arriving: bytes that all incomplete messages together may take.
            reject: rejects calls of these services before their messages are read.
            streams: calls of any kind that a connection may have in hand; more wait on the side of
                the client. None for no limit.
            security: how the server is protected.

        """
        limits = [
            ("grpc.max_receive_message_length", largest),
            ("grpc.max_connection_idle_ms", int(idle * 1e3)),
        ]
        if streams is not None:
            limits.append(("grpc.max_concurrent_streams", streams))
        if security.certificates is not None:
            limits.append(("grpc.max_connection_age_ms", AGE * 1_000))
        self._messages = MessageInterceptor(
            BoundedReceive(arriving // largest),
            reject,
            IdleTrimmer(trimming()).begin,
            PerAddressLimit(security.peer_calls),
        )
        self._certificates = security.certificates
        self.services = services
        self.grpc = grpc.aio.server(
            interceptors=[self._messages, interceptor], options=(*_OPTIONS, *limits)
        )
        self._health = Health(services)
        health_pb2_grpc.add_HealthServicer_to_server(self._health, self.grpc)
        if security.reflection:
            names = (*services, health_pb2.DESCRIPTOR.services_by_name["Health"].full_name)
            reflection.enable_server_reflection((*names, reflection.SERVICE_NAME), self.grpc)

    async def start(self, address: str) -> int:
        """Binds and starts, NOT_SERVING; returns the port. Raises UnavailableError if the address
        cannot be bound.
        """
        try:
            port = self._bind(address)
        except RuntimeError as error:
            port = 0
            cause: Exception | None = error
        else:
            cause = None
        if port == 0:
            raise UnavailableError(f"cannot listen on {address}: is it in use?") from cause
        await self.grpc.start()
        return int(port)

    def _bind(self, address: str) -> int:
        """The port; 0 or a RuntimeError if the address cannot be bound."""
        if self._certificates is None:
            return int(self.grpc.add_insecure_port(address))
        return int(self.grpc.add_secure_port(address, grpc_credentials(self._certificates)))

    async def set_serving(self, ready: bool) -> None:
        """Sets the health of every service and of the server as a whole (the empty name)."""
        self._health.serving(ready)

    async def drain(self, grace: float) -> None:
        """NOT_SERVING at once, then no new calls; waits up to `grace` seconds for those in hand.

        Streams are not waited for: watchers of the health are told and need not listen, and a
        stream of messages gets an error at its next message.
        """
        self._health.close()
        self._messages.leave()
        stopping = asyncio.create_task(self.grpc.stop(grace))
        while not stopping.done():
            idle = asyncio.create_task(self._messages.idle())
            await asyncio.wait({stopping, idle}, return_when=asyncio.FIRST_COMPLETED)
            idle.cancel()
            await asyncio.wait({stopping}, timeout=_FAREWELL)
            if not self._messages.calls:  # nor has one begun that was on its way
                break
        await self.grpc.stop(None)
        await stopping
