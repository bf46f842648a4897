"""gRPC over the simulated network: channels for generated stubs, servers for generated servicers.

Requests, replies, statuses and deadlines are those of gRPC. Messages are serialised, so conversions
are a part of the simulation. A call of a killed process fails as UNAVAILABLE once its peer knows.
"""

import asyncio
from collections import Counter
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import grpc
from grpc.aio import AioRpcError, Metadata

from simulation.network import Message, Network, Part
from simulation.process import Process, current_process

Pairs = Sequence[tuple[str, Any]]
_REFUSED_SECONDS = 0.001
"""Seconds until a connection to a port without a server is refused."""
_CONNECT_SECONDS = 20.0
"""Seconds until gRPC gives up an attempt to connect that nobody answers."""
_PORT = ":9000"


class AbortError(Exception):
    """Ends a call with a status."""

    def __init__(self, code: grpc.StatusCode, details: str, trailing: Pairs) -> None:
        super().__init__(details)
        self.code, self.details, self.trailing = code, details, trailing


@dataclass
class CallDetails:
    """The details of a call by which a server finds its handler."""

    method: str
    invocation_metadata: Pairs = ()


class ServerContext:
    """The context of a call in a server."""

    def __init__(self, until: float, metadata: Pairs, clock: Callable[[], float]) -> None:
        self._until, self._metadata, self._clock = until, metadata, clock
        self.trailing: Pairs = ()

    def time_remaining(self) -> float:
        return self._until - self._clock()

    def invocation_metadata(self) -> Pairs:
        return self._metadata

    def set_trailing_metadata(self, metadata: Pairs) -> None:
        self.trailing = metadata

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        """Does nothing: only counts of calls in flight need it."""

    async def abort(self, code: grpc.StatusCode, details: str = "", trailing: Pairs = ()) -> None:
        raise AbortError(code, details, trailing)


class SimulatedServer:
    """The services of a process; has the methods of `grpc.aio.Server` that generated code calls."""

    def __init__(self, interceptor: grpc.aio.ServerInterceptor | None = None) -> None:
        self._interceptor = interceptor
        self._handlers: list[grpc.GenericRpcHandler] = []
        self._found: dict[str, Any] = {}
        self.serving = False
        """Whether the port is open."""

    def add_generic_rpc_handlers(self, handlers: Sequence[grpc.GenericRpcHandler]) -> None:
        self._handlers += handlers

    def add_registered_method_handlers(self, service: str, handlers: object) -> None:
        """Does nothing: generated code also adds these methods with `add_generic_rpc_handlers`."""

    async def handler(self, method: str) -> Any:
        """Returns the handler of a method with the interceptor; None if there is none."""
        if method not in self._found:
            self._found[method] = await self._find(method)
        return self._found[method]

    async def _find(self, method: str) -> Any:
        details: Any = CallDetails(method)

        async def inner(details: Any) -> Any:
            found = (each.service(details) for each in self._handlers)
            return next((each for each in found if each is not None), None)

        if self._interceptor is None:
            return await inner(details)
        return await self._interceptor.intercept_service(inner, details)


@dataclass(slots=True)
class Endpoint:
    """What listens at an address now."""

    process: Process
    server: SimulatedServer


class SimulatedCall:
    """A call with one reply, as `winnow.rpc.replying` awaits it."""

    def __init__(self, future: "asyncio.Future[Any]", cancel: Callable[[], None]) -> None:
        self._future, self._cancel = future, cancel

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        self._future.add_done_callback(callback)

    def cancel(self) -> None:
        if not self._future.done():
            self._cancel()
            self._future.cancel()

    def __await__(self) -> Generator[Any, None, Any]:
        return self._future.__await__()


@dataclass(eq=False)
class Addresses:
    """The servers by address, and the network between them."""

    network: Network
    endpoints: dict[str, Endpoint] = field(default_factory=dict)
    calls: int = 0
    in_flight: dict["_Call", None] = field(default_factory=dict)
    """The calls without a result, in the order in which they were sent."""
    channels: list["SimulatedChannel"] = field(default_factory=list)
    sent: Counter[str] = field(default_factory=Counter)
    """Number of calls by the name of the caller."""

    def lose_connections(self, process: Process) -> None:
        """Fails all calls to a process whose machine is gone: it no longer answers pings."""
        for call in list(self.in_flight):
            call.lose_connection_to(process)

    def end_connections(self, process: Process) -> None:
        """Ends all calls of a process that has just been killed, and all calls to it.

        The other sides learn of it after what the process has sent.
        """
        for call in list(self.in_flight):
            call.end_connection_of(process)

    def break_connections(self, one: str, other: str) -> None:
        """Breaks the connections between two processes.

        Their calls fail. Later calls are sent by new connections. What has been sent may still
        arrive.
        """
        for call in list(self.in_flight):
            call.break_connection({one, other})
        for channel in self.channels:
            channel.reconnect({one, other})

    def open_channel(self, address: str, *_: object) -> "SimulatedChannel":
        channel = SimulatedChannel(self, address)
        self.channels.append(channel)
        return channel


class SimulatedChannel:
    """A channel to the server at an address; connects again after each failure."""

    def __init__(self, addresses: Addresses, address: str) -> None:
        self._addresses, self.address = addresses, address
        self._owner = current_process()
        self._is_closed = False
        self._connect()

    def reconnect(self, names: set[str]) -> None:
        """Makes later calls use a new connection if this channel is between two processes."""
        if names == {self._owner.name, self.address.removesuffix(_PORT)}:
            self._connect()

    def _connect(self) -> None:
        self._addresses.calls += 1
        self.connection = f"channel {self._addresses.calls}"

    def unary_unary(
        self,
        method: str,
        request_serializer: Callable[[Any], bytes],
        response_deserializer: Callable[[bytes], Any],
        **_: object,
    ) -> Callable[..., SimulatedCall]:
        def invoke(
            request: Any, timeout: float | None = None, metadata: Pairs | None = None
        ) -> SimulatedCall:
            if self._is_closed:
                raise grpc.aio.UsageError("Channel is closed.")
            shards = len(getattr(request, "shards", ())) or 1
            call = _Call(self._addresses, self, method, shards)
            return call.send(
                request_serializer(request), response_deserializer, timeout, metadata or ()
            )

        return invoke

    def stream_unary(self, *_: object, **__: object) -> Callable[..., Any]:
        return _refuse

    unary_stream = stream_unary
    stream_stream = stream_unary

    async def close(self, grace: float | None = None) -> None:
        """Cancels the calls of the channel."""
        self._is_closed = True
        for call in list(self._addresses.in_flight):
            if call.channel is self:
                call.cancel()
        if self in self._addresses.channels:
            self._addresses.channels.remove(self)


def _refuse(*_: object, **__: object) -> Any:
    raise NotImplementedError("streams are not simulated: use a call with one reply")


class _Call:
    """One call: its request, its reply, and its cancellation by the caller or by the deadline."""

    def __init__(
        self, addresses: Addresses, channel: SimulatedChannel, method: str, shards: int
    ) -> None:
        self._network, self._method, self._shards = addresses.network, method, shards
        self.channel, self._connection = channel, channel.connection
        self._loop = addresses.network.loop
        self._endpoint = addresses.endpoints.get(channel.address)
        self._address = channel.address
        self._caller = current_process()
        self._future: asyncio.Future[Any] = self._loop.create_future()
        self._handling: asyncio.Task[None] | None = None
        self._cancelled = False
        addresses.in_flight[self] = None
        self._future.add_done_callback(lambda _: addresses.in_flight.pop(self, None))
        addresses.calls += 1
        addresses.sent[self._caller.name] += 1
        self._label = f"#{addresses.calls} {method.rpartition('/')[2]}"

    def send(
        self,
        request: bytes,
        deserialise: Callable[[bytes], Any],
        timeout: float | None,
        metadata: Pairs,
    ) -> SimulatedCall:
        self._deserialise = deserialise
        endpoint = self._endpoint
        if endpoint is None or not (endpoint.server.serving and endpoint.process.alive):
            self._refuse(endpoint)
        else:

            def start() -> None:
                if not self._cancelled and endpoint.server.serving:
                    serving = self._serve(endpoint, request, timeout, metadata)
                    self._handling = self._loop.create_task(serving)

            self._send(self._caller, endpoint.process, Part.REQUEST, "", start, self._lose)
        if timeout is not None:
            self._loop.call_later(timeout, self._expire)
        return SimulatedCall(self._future, self._cancel)

    def _refuse(self, endpoint: Endpoint | None) -> None:
        names = (self._caller.name, self._address.removesuffix(_PORT))
        is_dark = names[1] in self._network.dark
        is_cut = {names, names[::-1]} & self._network.cut
        seconds = _CONNECT_SECONDS if is_dark or is_cut else _REFUSED_SECONDS
        self._loop.call_later(seconds, self._lose)

    async def _serve(
        self, endpoint: Endpoint, request: bytes, timeout: float | None, metadata: Pairs
    ) -> None:
        """Handles the call in the server; the deadline counts from the arrival, as in gRPC."""
        seconds = timeout if timeout is not None else 3_600.0
        context = ServerContext(self._loop.time() + seconds, metadata, self._loop.time)
        timer = self._loop.call_later(seconds, self._cancel_handling)
        try:
            handler = await endpoint.server.handler(self._method)
            if handler is None:
                raise AbortError(grpc.StatusCode.UNIMPLEMENTED, "method not found", ())
            reply = await handler.unary_unary(handler.request_deserializer(request), context)
            data = reply if isinstance(reply, bytes) else handler.response_serializer(reply)
        except AbortError as error:
            self._reply(endpoint, error.code.name, partial(self._fail, error))
        except asyncio.CancelledError:
            pass  # the caller has gone
        else:
            self._reply(endpoint, "OK", partial(self._succeed, data))
        finally:
            timer.cancel()

    def _cancel_handling(self) -> None:
        if self._handling is not None:
            self._handling.cancel()

    def _reply(self, endpoint: Endpoint, label: str, deliver: Callable[[], None]) -> None:
        self._send(endpoint.process, self._caller, Part.REPLY, f" {label}", deliver)

    def _succeed(self, data: bytes) -> None:
        if not self._future.done():
            self._future.set_result(self._deserialise(data))

    def _fail(self, error: AbortError) -> None:
        if not self._future.done():
            trailing = Metadata(*error.trailing)
            self._future.set_exception(
                AioRpcError(error.code, Metadata(), trailing, details=error.details)
            )
            self._future.exception()  # the caller may have gone, and asyncio would warn

    def _lose(self) -> None:
        self._fail(AbortError(grpc.StatusCode.UNAVAILABLE, "the connection was lost", ()))

    def cancel(self) -> None:
        """Ends the call: its caller has closed the channel."""
        if not self._future.done():
            self._cancel()
            self._future.cancel()

    def lose_connection_to(self, process: Process) -> None:
        """Fails the call soon if the process handles it."""
        if self._endpoint is not None and self._endpoint.process is process and self._caller.alive:
            self._loop.run_in(self._caller, self._lose)

    def end_connection_of(self, process: Process) -> None:
        """Ends the call, after what was sent, if the process makes or handles it."""
        endpoint = self._endpoint
        if endpoint is None:
            return
        if self._caller is process:
            self._send(process, endpoint.process, Part.CANCEL, " ends", self._stop, ends=True)
        elif endpoint.process is process and self._caller.alive:
            self._send(process, self._caller, Part.REPLY, " ends", self._lose, ends=True)

    def break_connection(self, names: set[str]) -> None:
        """Fails the call soon if it is between two processes."""
        endpoint = self._endpoint
        if endpoint is not None and names == {self._caller.name, endpoint.process.name}:
            self._loop.run_in(self._caller, self._break)

    def _break(self) -> None:
        if not self._future.done():
            self._lose()
            self._cancel()  # the end of the connection follows what was sent

    def _expire(self) -> None:
        if not self._future.done():
            self._fail(AbortError(grpc.StatusCode.DEADLINE_EXCEEDED, "Deadline Exceeded", ()))
            self._cancel()

    def _cancel(self) -> None:
        """Tells the server that the caller has gone; the message follows the request."""
        endpoint = self._endpoint
        if endpoint is None or self._cancelled:
            return
        self._send(self._caller, endpoint.process, Part.CANCEL, " cancel", self._stop)

    def _stop(self) -> None:
        """Ends the handling in the server."""
        self._cancelled = True
        self._cancel_handling()

    def _send(
        self,
        source: Process,
        target: Process,
        part: Part,
        label: str,
        deliver: Callable[[], None],
        lost: Callable[[], None] = lambda: None,
        *,
        ends: bool = False,
    ) -> None:
        method = self._method.rpartition("/")[2]
        message = Message(
            source, target, self._label + label, deliver, lost, method, part, self._shards, ends
        )
        self._network.send(message, self._connection)
