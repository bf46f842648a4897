"""A journal that is a stream of NATS JetStream: one stream for each shard, on file.

Knows the client. The client reconnects by itself, and buffers nothing: what cannot be sent fails at
once. What was sent and arrives late has expired (see `winnow.journal.expiry`). An acknowledged
entry is on as many servers as the stream has replicas; when it is on their disks is a setting of
theirs (see `docs/snapshots.md`).
"""

import asyncio
import contextlib
import hashlib
import time
from collections.abc import AsyncGenerator, Callable, Iterator
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
from winnow.journal.expiry import EXPIRES, SKEW, PublishWindow, has_expired
from winnow.journal.journal import JOURNAL, Delivered, JournalEntry
from winnow.journal.publishing import publish
from winnow.journal.pulling import following, messages

_log = structlog.get_logger("winnow.journal")
_CONNECT = 3.0
"""Seconds that connecting may take."""
_OPTIONS: dict[str, Any] = {
    "max_reconnect_attempts": -1,  # without end
    "reconnect_time_wait": 0.25,  # seconds; its type says whole ones
    "pending_size": 0,  # a write that could not be sent has failed, and must not be sent later
    "ping_interval": 5,  # seconds
    "max_outstanding_pings": 2,  # then the link is dead
}
_KEYS_KEPT = 120.0
"""Seconds in which the server recognises an entry: longer than any writer retries."""
_HEAD = 4_096
"""Bytes of a message that are reserved for its headers."""
_DIGITS = 16
_FULL_AFTER = 5.0
"""Seconds until a full disk may have room again."""
_FULL = (10023, 10047, 10077, 10122)
"""Codes of errors: no resources, no storage, too many messages or bytes."""


class JetStreamJournal:
    """A `Journal`."""

    def __init__(
        self, url: str, stream: str, skew: float = SKEW, wall: Callable[[], float] = time.time
    ) -> None:
        """`url`: nats://[USER:PASSWORD@]HOST:PORT, or tls://; `skew`: seconds by which `wall` and
        the servers' clocks may differ; `wall` gives seconds since 1970.
        """
        parts = urlsplit(url)
        self._skew, self._wall = skew, wall
        self._url, self._stream = url, stream
        self._name = f"stream {stream} at {parts.hostname}:{parts.port or 4222}"
        self._subject = stream.replace("-", ".")
        self._client: Client | None = None
        self._opening = asyncio.Lock()

    @property
    def name(self) -> str:
        return self._name

    @property
    def most_bytes(self) -> int:
        client = self._client
        return (client.max_payload if client is not None else _HEAD) - _HEAD

    async def open(self) -> str:
        with self._reached():
            _, streams = await self._connected()
            return _id_of(await self._made(streams))

    async def publish(self, content: bytes, key: str, deadline: Deadline) -> int:
        try:
            with self._reached():
                _, streams = await self._connected()
                window = PublishWindow.opened(self._wall(), deadline.left(), self._skew)
                headers = {Header.MSG_ID.value: key, EXPIRES: window.header}
                until = Deadline.after(window.seconds, deadline.clock)
                return await publish(streams, self._stream, self._subject, content, headers, until)
        except UnavailableError as error:
            if deadline.expired():
                raise DeadlineExceededError(str(error)) from error
            raise

    async def read(self, after: int, key: str = "") -> AsyncGenerator[Delivered, None]:
        with self._reached():
            client, streams = await self._connected()
            self._expect(after, await self._made(streams))
            await self._expect_key(streams, after, key)
            async with contextlib.aclosing(
                messages(client, streams, self._stream, after)
            ) as pulled:
                async for some in pulled:
                    entries = following(after, map(_entry, some))
                    after = entries[-1].place if entries else after
                    yield Delivered(entries, some[-1].metadata.num_pending if some else 0)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            with contextlib.suppress(nats.errors.Error, OSError):
                await client.close()

    async def _connected(self) -> tuple[Client, JetStreamContext]:
        """The client, and the streams of its server, of which the journal is one."""
        async with self._opening:
            if self._client is None or self._client.is_closed:
                client = await self._connect()
                try:
                    await self._made(client.jetstream(timeout=_CONNECT))
                except BaseException:
                    await client.close()
                    raise
                self._client = client
            return self._client, self._client.jetstream(timeout=_CONNECT)

    async def _connect(self) -> Client:
        client = Client()
        try:
            async with asyncio.timeout(_CONNECT):
                await client.connect(
                    self._url, name=self._stream, error_cb=self._log_error, **_OPTIONS
                )
        except BaseException:
            await client.close()
            raise
        return client

    async def _log_error(self, error: Exception) -> None:
        """Logs an error of the client, which goes on by itself; callers get their own errors."""
        _log.debug("NATS client error", error=repr(error), journal=self._name)

    async def _made(self, streams: JetStreamContext) -> StreamInfo:
        """The stream, which is created if there is none."""
        try:
            return await streams.stream_info(self._stream)
        except nats.js.errors.NotFoundError:
            return await streams.add_stream(
                StreamConfig(
                    name=self._stream,
                    subjects=[self._subject],
                    storage=StorageType.FILE,
                    retention=RetentionPolicy.LIMITS,
                    duplicate_window=_KEYS_KEPT,
                    deny_delete=True,
                    deny_purge=True,
                )
            )

    def _expect(self, after: int, info: StreamInfo) -> None:
        first, last = info.state.first_seq, info.state.last_seq
        if after > last:
            raise IdentityError(
                f"{self._name} ends at {last}, and the shard has followed one up to {after}: it is "
                "not the same; restore the stream, or the shard from a snapshot"
            )
        if last and after + 1 < first:
            raise IdentityError(
                f"{self._name} begins at {first}, and the shard has followed it up to {after}: "
                "restore the shard from a newer snapshot"
            )

    async def _expect_key(self, streams: JetStreamContext, place: int, key: str) -> None:
        """A server that lost its last entries gives their places to others."""
        if not key:
            return
        try:
            message = await streams.get_msg(self._stream, place)
        except nats.js.errors.NotFoundError:
            return  # removed, by an operator's limit
        found = (message.headers or {}).get(Header.MSG_ID.value, "")
        if found != key:
            raise IdentityError(
                f"{self._name} lost entries that it had acknowledged: its entry {place} is not the "
                "one that the shard stored. Restore the stream, or restore all replicas from one "
                "snapshot"
            )

    @contextlib.contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except nats.js.errors.APIError as error:
            if error.err_code in _FULL:
                raise OverloadedError(
                    f"{self._name} is full ({error.description}): make room there", _FULL_AFTER
                ) from error
            raise UnavailableError(f"{self._name} cannot be used: {error.description}") from error
        except nats.errors.MaxPayloadError as error:
            raise OverloadedError(
                f"{self._name} takes entries of {self.most_bytes} bytes: raise max_payload there"
            ) from error
        except (nats.errors.Error, OSError, TimeoutError) as error:
            raise UnavailableError(f"{self._name} cannot be reached: {_reason(error)}") from error
        except UnavailableError as error:
            raise UnavailableError(f"{self._name} cannot be followed: {error}") from error


def _id_of(info: StreamInfo) -> str:
    """The id of a stream; a stream that was created again is another one and begins at 1."""
    made = f"{info.config.name} {info.created}"
    return JOURNAL + hashlib.sha256(made.encode()).hexdigest()[:_DIGITS]


def _entry(message: Msg) -> JournalEntry:
    headers, metadata = message.headers or {}, message.metadata
    return JournalEntry(
        metadata.sequence.stream,
        headers.get(Header.MSG_ID.value, ""),
        message.data,
        has_expired(headers.get(EXPIRES, ""), metadata.timestamp),
    )


def _reason(error: BaseException) -> str:
    return str(error) or repr(error)
