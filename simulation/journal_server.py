"""A model of a NATS server with JetStream: streams, duplicates, pull consumers, and its disk.

The server keeps its streams on a disk. A kill loses nothing that it has written. A power loss also
loses what it has not synced: by default nothing, as with `sync_interval: always`. Otherwise the
server syncs every few seconds. The table of
message ids is restored from the stream, as JetStream does.
"""

import itertools
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

DUPLICATE_SECONDS = 120.0
_SYNC_SECONDS = 3.0
KEY_HEADER = "Nats-Msg-Id"
Push = Callable[["Delivery"], None]


@dataclass(frozen=True, slots=True)
class StoredMessage:
    """A message of a stream."""

    sequence: int
    headers: dict[str, str]
    content: bytes
    time: float
    """When the server stored it, in seconds since 1970 by its clock."""

    @property
    def timestamp(self) -> datetime:
        return datetime.fromtimestamp(0, UTC) + timedelta(seconds=self.time)


@dataclass(frozen=True, slots=True)
class Delivery:
    """What a consumer gets: a message, or a status without one."""

    message: StoredMessage | None
    status: str = ""
    pending: int = 0
    """Number of messages after this one."""


@dataclass(slots=True)
class Stream:
    """A stream on the disk of the server."""

    name: str
    created: float
    messages: list[StoredMessage] = field(default_factory=list)
    keys: dict[str, int] = field(default_factory=dict)
    """The sequence number of each message id; ids older than the window do not count."""
    duplicate_seconds: float = DUPLICATE_SECONDS
    """Seconds in which a repeated message id is not stored again."""
    synced: int = 0
    """Number of messages that survive a power loss."""

    def append(self, headers: dict[str, str], content: bytes, now: float) -> int:
        """Stores a message, unless its id is a duplicate; returns its sequence number."""
        key = headers.get(KEY_HEADER, "")
        known = self.keys.get(key, 0) if key else 0
        if known and self.messages[known - 1].time > now - self.duplicate_seconds:
            return known
        self.messages.append(StoredMessage(len(self.messages) + 1, headers, content, now))
        if key:
            self.keys[key] = len(self.messages)
        return len(self.messages)

    def lose_unsynced(self) -> int:
        """Forgets the messages that a power loss erases; returns their number."""
        lost = len(self.messages) - self.synced
        del self.messages[self.synced :]
        self.keys = {key: number for key, number in self.keys.items() if number <= self.synced}
        return lost


@dataclass(slots=True)
class _Pull:
    """A request of a consumer for further messages."""

    push: Push
    remaining: int
    ends_at: float


@dataclass(slots=True)
class Consumer:
    """Sends the messages of a stream in order, as far as it was asked to."""

    stream: Stream
    sent: int
    """Sequence number of the last message that was sent."""
    pull: _Pull | None = None

    def deliver(self) -> None:
        """Sends the messages that are there and were requested."""
        messages, pull = self.stream.messages, self.pull
        while pull is not None and pull.remaining and self.sent < len(messages):
            message = messages[self.sent]
            self.sent += 1
            pull.remaining -= 1
            pull.push(Delivery(message, pending=len(messages) - self.sent))


@dataclass(slots=True)
class JetStreamModel:
    """The disk of a server, and the consumers that a restart forgets."""

    sync_always: bool = True
    streams: dict[str, Stream] = field(default_factory=dict)
    consumers: dict[str, Consumer] = field(default_factory=dict)
    full: bool = False
    """Whether the server refuses messages, because its disk is full."""
    synced_at: float = 0.0
    """When the streams were last synced, if entries are not synced one by one."""
    _numbers: "itertools.count[int]" = field(default_factory=itertools.count)

    def restart(self, *, power_loss: bool) -> list[str]:
        """Starts again after a kill, or after a power loss.

        Returns the names of the streams that have lost messages.
        """
        self.consumers.clear()
        if not power_loss:
            return []
        return [stream.name for stream in self.streams.values() if stream.lose_unsynced()]

    def publish(self, stream: Stream, headers: dict[str, str], content: bytes, now: float) -> int:
        """Stores a message; sends it to consumers."""
        sequence = stream.append(headers, content, now)
        if self.sync_always:
            stream.synced = len(stream.messages)
        for consumer in self.consumers.values():
            if consumer.stream is stream:
                consumer.deliver()
        return sequence

    def add_consumer(self, stream: Stream, start: int) -> str:
        """Creates a consumer that begins with the message `start`; returns its name."""
        name = f"consumer-{next(self._numbers)}"
        self.consumers[name] = Consumer(stream, start - 1)
        return name

    def request(self, name: str, push: Push, batch: int, ends_at: float) -> None:
        """Handles a request for messages; an unknown consumer gets no reply."""
        consumer = self.consumers.get(name)
        if consumer is not None:
            consumer.pull = _Pull(push, batch, ends_at)
            consumer.deliver()

    def beat(self, now: float) -> None:
        """Sends heartbeats, and ends requests whose time is over. Syncs every few seconds."""
        if now - self.synced_at >= _SYNC_SECONDS:
            self.synced_at = now
            for stream in self.streams.values():
                stream.synced = len(stream.messages)
        for consumer in self.consumers.values():
            pull = consumer.pull
            if pull is None:
                continue
            if now >= pull.ends_at:
                consumer.pull = None
                pull.push(Delivery(None, "408"))
            elif pull.remaining:
                pull.push(Delivery(None, "100"))
