"""A journal in NATS JetStream: one stream on disk for each shard.

The client reconnects automatically, and buffers nothing: an entry that cannot be sent fails
immediately. Entries that arrive late have expired (see `winnow.journal.expiry`). An acknowledged
entry is on all servers that replicate the stream; their settings decide when they sync it to disk
(see `docs/snapshots.md`).
"""

import asyncio
import contextlib
import hashlib
import time
from collections.abc import AsyncGenerator, Callable, Iterator
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

import nats.errors
import nats.js.errors
import structlog
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.js import JetStreamContext
from nats.js.api import Header, RetentionPolicy, StorageType, StreamConfig, StreamInfo

from winnow.deadline import Deadline
from winnow.errors import DeadlineExceededError, IdentityError, OverloadedError, UnavailableError
from winnow.journal.expiry import EXPIRY_HEADER, SKEW, PublishWindow, has_expired
from winnow.journal.journal import JOURNAL, EntryBatch, JournalEntry, PublishedEntry
from winnow.journal.publishing import publish
from winnow.journal.pulling import new_entries, pull_messages

_log = structlog.get_logger("winnow.journal")
CONNECT_TIMEOUT = 3.0
"""Seconds that connecting may take."""
_CLIENT_OPTIONS: dict[str, Any] = {
    "max_reconnect_attempts": -1,  # unlimited
    "reconnect_time_wait": 0.25,  # seconds; fractions work, although the type is int
    "pending_size": 0,  # a write that could not be sent must not be sent later
    "ping_interval": 5,  # seconds
    "max_outstanding_pings": 2,  # more mean that the link is dead
}
_DUPLICATE_WINDOW = 120.0
"""Seconds in which the server rejects a repeated key. No writer retries longer."""
_ATTEMPT_HEADER = "Winnow-Attempt"
"""Name of the header with the number of the attempt that stores an entry; without it, 0."""
_HEADER_BYTES = 4_096
"""Bytes of a message reserved for headers."""
_ID_DIGITS = 16
_FULL_RETRY_AFTER = 5.0
"""Seconds after which callers may retry when the stream is full."""
_FULL_ERROR_CODES = (10023, 10047, 10077, 10122)
"""JetStream error codes: no resources, no storage, too many messages or bytes."""


class JetStreamJournal:
    """A `Journal` in a JetStream stream."""

    def __init__(
        self, url: str, stream: str, skew: float = SKEW, wall: Callable[[], float] = time.time
    ) -> None:
        """Does not connect yet.

        Args:
            url: nats://[USER:PASSWORD@]HOST:PORT, or tls://.
            stream: name of the stream.
            skew: limit of seconds between `wall` and the clocks of the servers.
            wall: returns the time in seconds since 1970.

        """
        parts = urlsplit(url)
        self._skew, self._wall = skew, wall
        self._url, self._stream = url, stream
        self._name = f"stream {stream} at {parts.hostname}:{parts.port or 4222}"
        self._subject = stream.replace("-", ".")
        self._client: Client | None = None
        self._connect_lock = asyncio.Lock()

    @property
    def name(self) -> str:
        return self._name

    @property
    def max_bytes(self) -> int:
        client = self._client
        return (client.max_payload if client is not None else _HEADER_BYTES) - _HEADER_BYTES

    async def open(self) -> str:
        with self._translated_errors():
            _, streams = await self._connected()
            return id_of_stream(await self._ensure_stream(streams))

    async def publish(
        self, content: bytes, key: str, deadline: Deadline, attempt: int = 0
    ) -> PublishedEntry:
        try:
            with self._translated_errors():
                _, streams = await self._connected()
                window = PublishWindow.starting(self._wall(), deadline.left(), self._skew)
                headers = {Header.MSG_ID.value: key, EXPIRY_HEADER: window.header}
                if attempt:
                    headers[_ATTEMPT_HEADER] = str(attempt)
                end = Deadline.after(window.seconds, deadline.clock)
                published = await publish(
                    streams, self._stream, self._subject, content, headers, end
                )
                if not published.is_duplicate:
                    return replace(published, attempt=attempt)
                stored_by = await self._attempt_of(streams, published.sequence)
                return replace(published, attempt=stored_by)
        except UnavailableError as error:
            if deadline.expired():
                raise DeadlineExceededError(str(error)) from error
            raise

    async def read(self, after: int, key: str = "") -> AsyncGenerator[EntryBatch, None]:
        with self._translated_errors():
            client, streams = await self._connected()
            info = await self._ensure_stream(streams)
            self._check_range(after, info)
            await self._check_key(streams, after, key)
            backlog = info.state.last_seq - after
            async with contextlib.aclosing(
                pull_messages(client, streams, self._stream, after)
            ) as pulled:
                async for batch in pulled:
                    if batch:  # else the server sent a status, for example between two requests
                        backlog = batch[-1].metadata.num_pending
                    entries = new_entries(after, map(_entry, batch))
                    after = entries[-1].sequence if entries else after
                    yield EntryBatch(entries, backlog)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(nats.errors.Error, OSError):
                await client.close()

    async def _connected(self) -> tuple[Client, JetStreamContext]:
        """Connects if needed; returns the client and its JetStream context."""
        async with self._connect_lock:
            if self._client is None or self._client.is_closed:
                client = await connect(self._url, self._stream)
                try:
                    await self._ensure_stream(client.jetstream(timeout=CONNECT_TIMEOUT))
                except BaseException:
                    await client.close()
                    raise
                self._client = client
            return self._client, self._client.jetstream(timeout=CONNECT_TIMEOUT)

    async def _ensure_stream(self, streams: JetStreamContext) -> StreamInfo:
        """Returns the info of the stream; creates the stream if it is missing."""
        try:
            return await streams.stream_info(self._stream)
        except nats.js.errors.NotFoundError:
            return await streams.add_stream(
                StreamConfig(
                    name=self._stream,
                    subjects=[self._subject],
                    storage=StorageType.FILE,
                    retention=RetentionPolicy.LIMITS,
                    duplicate_window=_DUPLICATE_WINDOW,
                    deny_delete=True,
                    deny_purge=True,
                )
            )

    def _check_range(self, after: int, info: StreamInfo) -> None:
        """Raises IdentityError unless the stream continues after entry `after`."""
        first, last = info.state.first_seq, info.state.last_seq
        if after > last:
            raise IdentityError(
                f"{self._name} ends at entry {last}, but the shard has applied entries up to "
                f"{after}: restore the stream, or the shard from a snapshot"
            )
        if last and after + 1 < first:
            raise IdentityError(
                f"{self._name} begins at entry {first}, but the shard has applied entries only up "
                f"to {after}: restore the shard from a newer snapshot"
            )

    async def _attempt_of(self, streams: JetStreamContext, sequence: int) -> int:
        """Returns the number of the attempt that stored an entry."""
        try:
            message = await streams.get_msg(self._stream, sequence)
        except nats.js.errors.NotFoundError:
            return 0  # removed by a limit that an operator set
        number = (message.headers or {}).get(_ATTEMPT_HEADER, "")
        return int(number) if number.isdecimal() else 0

    async def _check_key(self, streams: JetStreamContext, sequence: int, key: str) -> None:
        """Raises IdentityError if the entry `sequence` has another key than `key`.

        A server that lost its last entries gives their sequence numbers to later entries.
        """
        if not key:
            return
        try:
            message = await streams.get_msg(self._stream, sequence)
        except nats.js.errors.NotFoundError:
            return  # removed by a limit that an operator set
        if (message.headers or {}).get(Header.MSG_ID.value, "") != key:
            raise IdentityError(
                f"{self._name} lost entries that it had acknowledged: its entry {sequence} is not "
                "the one that the shard stored. Restore the stream, or restore all replicas from "
                "one snapshot"
            )

    @contextlib.contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except nats.js.errors.APIError as error:
            if error.err_code in _FULL_ERROR_CODES:
                raise OverloadedError(
                    f"{self._name} is full ({error.description}): free space on the server",
                    _FULL_RETRY_AFTER,
                ) from error
            raise UnavailableError(f"{self._name} cannot be used: {error.description}") from error
        except nats.errors.MaxPayloadError as error:
            raise OverloadedError(
                f"an entry exceeds the {self.max_bytes} bytes that {self._name} accepts: raise "
                "max_payload of the server"
            ) from error
        except (nats.errors.Error, OSError, TimeoutError) as error:
            raise unreachable(self._name, error) from error
        except UnavailableError as error:
            raise UnavailableError(f"{self._name} cannot be followed: {error}") from error


def id_of_stream(info: StreamInfo) -> str:
    """Returns the id of a stream. It depends on the time of creation, because a recreated stream
    starts again at sequence number 1.
    """
    identity = f"{info.config.name} {info.created}"
    return JOURNAL + hashlib.sha256(identity.encode()).hexdigest()[:_ID_DIGITS]


def _entry(message: Msg) -> JournalEntry:
    headers, metadata = message.headers or {}, message.metadata
    return JournalEntry(
        metadata.sequence.stream,
        headers.get(Header.MSG_ID.value, ""),
        message.data,
        has_expired(headers.get(EXPIRY_HEADER, ""), metadata.timestamp),
    )


async def connect(url: str, name: str) -> Client:
    """Returns a connected client that reconnects by itself; `name` is shown by the server.

    Raises nats.errors.Error, OSError or TimeoutError if that fails.
    """

    async def log_error(error: Exception) -> None:
        _log.debug("NATS client error", error=repr(error), client=name)

    client = Client()
    try:
        async with asyncio.timeout(CONNECT_TIMEOUT):
            await client.connect(url, name=name, error_cb=log_error, **_CLIENT_OPTIONS)
    except BaseException:
        await client.close()
        raise
    return client


def unreachable(name: str, error: BaseException) -> UnavailableError:
    """Returns the error of calls to a journal that cannot be reached."""
    reason = str(error) or repr(error)
    if isinstance(error, nats.errors.OutboundBufferLimitError):
        reason = "the connection is lost"  # there is no buffer: see `pending_size`
    elif isinstance(error, TimeoutError) and not str(error):
        reason = "no reply in time"
    return UnavailableError(f"{name} cannot be reached: {reason}")
