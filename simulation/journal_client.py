"""A stand-in for the client of nats-py, over the simulated network.

It has the methods that `winnow.journal` calls, with the same errors. A client that knows that it is
cut off buffers what it publishes, up to its `pending_size`, and sends it when it has reconnected. A
client that does not know sends into the void: a held message arrives when the partition ends.
"""

import asyncio
import itertools
import json
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from types import SimpleNamespace
from typing import Any

import nats.errors
import nats.js.errors

from simulation.journal_server import Delivery, JetStreamModel, StoredMessage
from simulation.network import Message, Network
from simulation.process import Process, current_process

_MAX_PAYLOAD = 1_048_576
_DEFAULT_PENDING = 2 * 1_048_576
_RECONNECT_SECONDS = 0.25
_PING_LIMIT = 2
_NEXT = "$JS.API.CONSUMER.MSG.NEXT."
_NO_SPACE = 10_047
_NANOSECONDS = 1_000_000_000


@dataclass(eq=False)
class JournalHost:
    """Where the server runs now."""

    network: Network
    model: JetStreamModel
    process: Process
    wall: Callable[[], float]
    clients: int = 0
    opened: list["SimulatedNats"] = field(default_factory=list)

    def break_connections(self, name: str) -> None:
        """Breaks the connections of a process to the server. Its clients connect again."""
        for client in self.opened:
            client.lose_connection(name)


class Received:
    """A message of a subscription, as nats-py presents it."""

    def __init__(self, delivery: Delivery) -> None:
        message = delivery.message
        self.headers = {"Status": delivery.status} if message is None else message.headers
        self.data = b"" if message is None else message.content
        if message is not None:
            self.metadata = SimpleNamespace(
                sequence=SimpleNamespace(stream=message.sequence),
                timestamp=message.timestamp,
                num_pending=delivery.pending,
            )


class SimulatedSubscription:
    """The messages that have arrived for an inbox."""

    def __init__(self, close: Callable[[], object]) -> None:
        self._messages: deque[Received] = deque()
        self._arrived = asyncio.Event()
        self._close = close

    @property
    def pending_msgs(self) -> int:
        return len(self._messages)

    def push(self, delivery: Delivery) -> None:
        self._messages.append(Received(delivery))
        self._arrived.set()

    async def next_msg(self, timeout: float) -> Received:
        if not self._messages:
            self._arrived.clear()
            try:
                async with asyncio.timeout(timeout):
                    await self._arrived.wait()
            except TimeoutError as error:
                raise nats.errors.TimeoutError from error
        return self._messages.popleft()

    async def unsubscribe(self) -> None:
        self._close()


@dataclass
class _Pending:
    """A publish that waits for the connection."""

    size: int
    send: Callable[[], None]


class SimulatedNats:
    """A client, as `nats.aio.client.Client`. `host` is set by `simulation.cluster`."""

    host: JournalHost | None = None

    def __init__(self) -> None:
        assert SimulatedNats.host is not None
        self._process = current_process()
        self.own_host = self._host = SimulatedNats.host
        self._server: Process | None = None
        """The server that the client believes to be connected to; None while it reconnects."""
        self._pending: deque[_Pending] = deque()
        self._pending_limit = _DEFAULT_PENDING
        self._inboxes: dict[str, SimulatedSubscription] = {}
        self._requests: dict[int, asyncio.Future[Any]] = {}
        self._numbers = itertools.count()
        self._keeper: asyncio.Task[None] | None = None
        self.is_closed = False
        self.max_payload = _MAX_PAYLOAD
        self._host.clients += 1
        self._host.opened.append(self)
        self._connection = f"nats {self._host.clients}"

    async def connect(self, url: str, **options: Any) -> None:
        self._pending_limit = options.get("pending_size", _DEFAULT_PENDING)
        self._ping_interval = float(options.get("ping_interval", 120))
        await self._handshake()
        self._keeper = asyncio.create_task(self._keep_connected())

    async def close(self) -> None:
        self.is_closed = True
        self._server = None
        if self._keeper is not None:
            self._keeper.cancel()

    def jetstream(self, timeout: float = 5.0) -> "SimulatedJetStream":
        return SimulatedJetStream(self, timeout)

    def new_inbox(self) -> str:
        return f"inbox-{next(self._numbers)}"

    async def subscribe(self, inbox: str) -> SimulatedSubscription:
        subscription = SimulatedSubscription(lambda: self._inboxes.pop(inbox, None))
        self._inboxes[inbox] = subscription
        return subscription

    async def publish(self, subject: str, content: bytes, reply: str = "") -> None:
        """Sends a request of a consumer; the only subject that Winnow publishes to directly."""
        self._check_open()
        request = json.loads(content)
        consumer = subject.removeprefix(_NEXT).split(".")[1]

        def handle(model: JetStreamModel) -> None:
            now = self._host.network.loop.time()
            push = partial(self._push, reply)
            model.request(consumer, push, request["batch"], now + request["expires"] / _NANOSECONDS)

        self._send_or_buffer(len(content), "pull", handle)

    def _push(self, inbox: str, delivery: Delivery) -> None:
        """Sends what a consumer gets to the client; runs in the server."""

        def receive() -> None:
            if inbox in self._inboxes:
                self._inboxes[inbox].push(delivery)

        message = delivery.message
        label = f"entry {message.sequence}" if message else f"status {delivery.status}"
        self._to_client(label, receive)

    async def request(
        self, label: str, work: Callable[[JetStreamModel], Any], timeout: float, size: int = 100
    ) -> Any:
        """Makes the server do something; returns the result, or raises its error."""
        self._check_open()
        number = next(self._numbers)
        future = self._requests[number] = asyncio.get_running_loop().create_future()

        def handle(model: JetStreamModel) -> None:
            try:
                result: Any = work(model)
            except nats.js.errors.Error as error:
                result = error
            self._to_client(f"reply to {label}", partial(self._resolve, number, result))

        try:
            self._send_or_buffer(size, label, handle)
            async with asyncio.timeout(timeout):
                return await future
        except TimeoutError as error:
            raise nats.errors.TimeoutError from error
        finally:
            self._requests.pop(number, None)

    def _resolve(self, number: int, result: Any) -> None:
        future = self._requests.get(number)
        if future is None or future.done():
            return
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)

    def _check_open(self) -> None:
        if self.is_closed:
            raise nats.errors.ConnectionClosedError

    def _send_or_buffer(
        self, size: int, label: str, handle: Callable[[JetStreamModel], None]
    ) -> None:
        """Sends a message; buffers it while the client reconnects, if there is room."""
        send = partial(self._to_server, label, handle)
        if self._server is not None:
            send()
            return
        if sum(each.size for each in self._pending) + size > self._pending_limit:
            raise nats.errors.OutboundBufferLimitError
        self._pending.append(_Pending(size, send))

    def _to_server(self, label: str, handle: Callable[[JetStreamModel], None]) -> None:
        server = self._server
        assert server is not None
        deliver = partial(handle, self._host.model)
        lost = partial(self._disconnected, server)
        self._host.network.send(
            Message(self._process, server, label, deliver, lost), self._connection
        )

    def _to_client(self, label: str, deliver: Callable[[], None]) -> None:
        """Sends a message to the client; runs in the server."""
        self._host.network.send(
            Message(current_process(), self._process, label, deliver, lambda: None),
            self._connection,
        )

    def lose_connection(self, name: str) -> None:
        """Makes the client of a process connect again."""
        if self._process.name == name:
            self._server = None

    def _disconnected(self, server: Process) -> None:
        if self._server is server:
            self._server = None

    async def _handshake(self) -> None:
        """Connects to the server that runs now; raises NoServersError if there is none."""
        server = self._host.process
        if not server.alive:
            await asyncio.sleep(_RECONNECT_SECONDS)
            raise nats.errors.NoServersError
        self._host.clients += 1
        self._connection = f"nats {self._host.clients}"
        connected: asyncio.Future[None] = asyncio.get_running_loop().create_future()

        def welcome() -> None:
            if not connected.done():
                connected.set_result(None)

        def fail() -> None:
            if not connected.done():
                connected.set_exception(nats.errors.NoServersError())

        network = self._host.network
        network.send(
            Message(
                self._process,
                server,
                "connect",
                partial(self._to_client, "connected", welcome),
                fail,
            ),
            self._connection,
        )
        async with asyncio.timeout(2.0):
            await connected
        self._server = server
        while self._pending:
            self._pending.popleft().send()

    async def _keep_connected(self) -> None:
        """Pings the server; reconnects once it does not answer, or the connection was lost."""
        missed, checked_at = 0, asyncio.get_running_loop().time()
        while True:
            await asyncio.sleep(_RECONNECT_SECONDS)
            if self._server is not None and not self._server.alive:
                dark = self._server.name in self._host.network.dark
                self._server = self._server if dark else None
            if self._server is None:
                missed = 0
                try:
                    await self._handshake()
                except (nats.errors.Error, TimeoutError):
                    continue
            now = asyncio.get_running_loop().time()
            if now - checked_at < self._ping_interval:
                continue
            checked_at, server = now, self._server
            try:
                await self.request("ping", lambda _: None, self._ping_interval / 2)
                missed = 0
            except nats.errors.Error:
                missed += 1
                if missed >= _PING_LIMIT and server is self._server:
                    self._server = None


class SimulatedJetStream:
    """The context of JetStream of a client."""

    def __init__(self, client: SimulatedNats, timeout: float) -> None:
        self._client, self._timeout = client, timeout

    async def publish(
        self,
        subject: str,
        content: bytes,
        timeout: float,
        stream: str,
        headers: dict[str, str],
    ) -> Any:
        host = self._client.own_host

        def store(model: JetStreamModel) -> Any:
            found = _stream(model, stream)
            if model.full:
                raise nats.js.errors.APIError(
                    code=503, err_code=_NO_SPACE, description="insufficient resources"
                )
            last = len(found.messages)
            sequence = model.publish(found, headers, content, host.wall())
            return SimpleNamespace(seq=sequence, duplicate=sequence <= last)

        key = headers.get("Nats-Msg-Id", "")[:6]
        return await self._client.request(f"publish {key}", store, timeout, len(content))

    async def stream_info(self, name: str) -> Any:
        return await self._ask("stream info", lambda model: _info(_stream(model, name)))

    async def add_stream(self, config: Any) -> Any:
        host = self._client.own_host

        def add(model: JetStreamModel) -> Any:
            from simulation.journal_server import Stream  # noqa: PLC0415

            new = Stream(config.name, host.wall(), duplicate_seconds=config.duplicate_window)
            return _info(model.streams.setdefault(config.name, new))

        return await self._ask("add stream", add)

    async def add_consumer(self, stream: str, config: Any) -> Any:
        def add(model: JetStreamModel) -> Any:
            name = model.add_consumer(_stream(model, stream), config.opt_start_seq)
            return SimpleNamespace(name=name)

        return await self._ask("add consumer", add)

    async def get_msg(self, stream: str, sequence: int) -> StoredMessage:
        def get(model: JetStreamModel) -> StoredMessage:
            messages = _stream(model, stream).messages
            if not 1 <= sequence <= len(messages):
                raise nats.js.errors.NotFoundError
            found: StoredMessage = messages[sequence - 1]
            return found

        found: StoredMessage = await self._ask("get message", get)
        return found

    def _ask(self, label: str, work: Callable[[JetStreamModel], Any]) -> Awaitable[Any]:
        return self._client.request(label, work, self._timeout)


def _stream(model: JetStreamModel, name: str) -> Any:
    if name not in model.streams:
        raise nats.js.errors.NotFoundError
    return model.streams[name]


def _info(stream: Any) -> Any:
    return SimpleNamespace(
        config=SimpleNamespace(name=stream.name),
        created=stream.created,
        state=SimpleNamespace(
            first_seq=min(len(stream.messages), 1), last_seq=len(stream.messages)
        ),
    )
