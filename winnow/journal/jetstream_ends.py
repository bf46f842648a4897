"""Reads the ends of JetStream streams by one connection, without consumers."""

import asyncio
import contextlib
import time
from collections.abc import Callable
from urllib.parse import urlsplit

import nats.errors
import nats.js.errors
from nats.aio.client import Client

from winnow.deadline import Clock
from winnow.errors import UnavailableError
from winnow.journal.jetstream import CONNECT_TIMEOUT, connect, id_of_stream, unreachable
from winnow.journal.journal import JournalEnd

_CLIENT_NAME = "winnow-journal-ends"
_RETRY_AFTER = 3.0
"""Seconds after a failed connection in which all reads fail at once."""


class JetStreamEnds:
    """A `ReadsJournalEnds` of JetStream."""

    def __init__(
        self, url: str, stream_of: Callable[[str, int], str], clock: Clock = time.monotonic
    ) -> None:
        """Does not connect yet. `stream_of` returns the name of a shard's stream."""
        parts = urlsplit(url)
        self._url, self._stream_of = url, stream_of
        self._name = f"the journal at {parts.hostname}:{parts.port or 4222}"
        self._client: Client | None = None
        self._connect_lock = asyncio.Lock()
        self._clock = clock
        self._failed: tuple[float, UnavailableError] | None = None
        """Time and error of the last connection, if it failed."""

    async def read(self, index_id: str, shard: int) -> JournalEnd | None:
        try:
            streams = (await self._connected()).jetstream(timeout=CONNECT_TIMEOUT)
            info = await streams.stream_info(self._stream_of(index_id, shard))
        except nats.js.errors.NotFoundError:
            return None
        except nats.js.errors.APIError as error:
            raise UnavailableError(f"{self._name} cannot be used: {error.description}") from error
        except (nats.errors.Error, OSError, TimeoutError) as error:
            raise unreachable(self._name, error) from error
        return JournalEnd(id_of_stream(info), info.state.last_seq)

    async def close(self) -> None:
        async with self._connect_lock:
            client, self._client = self._client, None
            if client is not None:
                with contextlib.suppress(nats.errors.Error, OSError):
                    await client.close()

    async def _connected(self) -> Client:
        async with self._connect_lock:
            if self._client is None or self._client.is_closed:
                # a thousand reads must not wait for a connection each, one after the other
                if self._failed is not None and self._clock() < self._failed[0] + _RETRY_AFTER:
                    raise UnavailableError(str(self._failed[1]))
                try:
                    self._client = await connect(self._url, _CLIENT_NAME)
                except (nats.errors.Error, OSError, TimeoutError) as error:
                    self._failed = self._clock(), unreachable(self._name, error)
                    raise
            return self._client
