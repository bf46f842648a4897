"""Follows a journal: its entries become writes of this shard, in order, each once.

The place of the last entry is stored in the same transaction as its writes. So nothing is applied
twice or left out, even if this process ends at any moment. Of an expired entry, the place is stored
and the writes are not.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import aclosing
from itertools import islice
from typing import Protocol

import structlog

from winnow.content_node.journal.metrics import JournalMetrics
from winnow.domain.write import Write, Written
from winnow.errors import (
    IdentityError,
    InvalidRequestError,
    OverloadedError,
    UnavailableError,
    WinnowError,
)
from winnow.journal.journal import JOURNAL, EntryBatch, Journal, JournalEntry

_log = structlog.get_logger("content_node")
_PAUSE = 0.25
"""Seconds until a failed read of the journal, or a failed write, is repeated."""
_TRIES_PER_LINE = 40
"""Failed tries for each line of the log."""
_NONE = "0"
"""The place before the first entry."""
_TOGETHER = 2_000_000
"""Bytes of entries that share a transaction: some hundred passages, some tenths of a second."""
_EXPIRED = (
    "the journal stored the writes after they had expired, so no replica applies them: send them "
    "again; if that does not help, compare the clocks of this node and of the journal"
)
Sleep = Callable[[float], Awaitable[None]]
Decode = Callable[[bytes], list[Write]]
OnApplied = Callable[[JournalEntry, list[Written] | Exception], None]
OnFault = Callable[[str], None]


class JournalFollower(Protocol):
    """A shard that follows a journal; see `content_node.live.shard`."""

    @property
    def place(self) -> str:
        """The place of the last applied entry; empty before the first one."""

    @property
    def log_id(self) -> str:
        """The id of the replica's own log; empty before it has one."""

    async def follow(self, writes: Sequence[Write], place: str, log_id: str = "") -> list[Written]:
        """Stores writes and a place of the log, both or neither.

        Its own log is called `log_id` if it has to be made.

        Raises InvalidRequestError if a write is not for this shard. Raises OverloadedError if there
        is no room now.
        """


class Follower:
    """Keeps a replica up to date with a journal."""

    def __init__(
        self,
        *,
        journal: Journal,
        replica: JournalFollower,
        decode: Decode,
        applied: OnApplied,
        metrics: JournalMetrics,
        sleep: Sleep = asyncio.sleep,
        fault: OnFault = lambda _: None,
    ) -> None:
        """`applied` is called with the results of each entry once they are durable here; `fault`
        with the reason why entries cannot be read or stored, and with an empty one once they can.
        """
        self._fault = fault
        self._journal, self._replica, self._decode = journal, replica, decode
        self._applied, self._metrics, self._sleep = applied, metrics, sleep

    async def run(self) -> None:
        """Follows until it is cancelled. Raises IdentityError if the journal is not the one that
        was followed, or lacks what comes next.
        """
        failures = 0
        while True:
            try:
                async with aclosing(self._journal.read(*await self._begun())) as deliveries:
                    async for delivered in deliveries:
                        await self._apply(delivered)
                        self._metrics.followed(delivered.backlog)
                        self._fault("")
                        if failures:
                            _log.info("the journal is followed again", journal=self._journal.name)
                        failures = 0
            except IdentityError:
                self._metrics.lost()
                raise
            except WinnowError as error:
                self._metrics.lost()
                self._fault(str(error))
                if failures % _TRIES_PER_LINE == 0:
                    _log.warning("the journal is not followed; trying again", reason=str(error))
                failures += 1
                await self._sleep(_PAUSE)

    async def _begun(self) -> tuple[int, str]:
        """The last stored entry. At the beginning, the replica names its log after the journal."""
        found = await self._journal.open()
        known = self._replica.log_id
        if known.startswith(JOURNAL) and known != found:
            raise IdentityError(
                f"{self._journal.name} is not the journal that this shard has followed so far: "
                "restore it, or remove the shard and begin from the index as it was built"
            )
        if known and not self._replica.place:
            raise IdentityError(
                "the shard took writes before it followed a journal, so its replicas lack them: "
                "start from the index as it was built, and feed the writes again"
            )
        if not self._replica.place:
            await self._replica.follow([], _NONE, found)
        number, _, key = self._replica.place.partition(" ")
        return int(number), key

    async def _apply(self, delivered: EntryBatch) -> None:
        """Stores entries, several in a transaction, since each transaction waits for the disk."""
        ahead = len(delivered.entries)
        for some in _together(delivered.entries):
            await self._store(some)
            ahead -= len(some)
            self._metrics.applied(len(some), some[-1].sequence, ahead + delivered.backlog)

    async def _store(self, entries: Sequence[JournalEntry]) -> None:
        place = _place_of(entries[-1])
        try:
            calls = [await self._writes(entry) for entry in entries]
            written = await self._replica.follow([write for call in calls for write in call], place)
        except (InvalidRequestError, OverloadedError) as error:
            if len(entries) > 1:  # one may be wrong, or there may be room for fewer at once
                for entry in entries:
                    await self._store([entry])
                return
            if isinstance(error, OverloadedError):
                raise
            await self._pass_over(entries[0], error)
            return
        self._count_expired([each for each in entries if each.expired])
        results = iter(written)
        for entry, call in zip(entries, calls, strict=True):
            own = list(islice(results, len(call)))
            self._applied(entry, UnavailableError(_EXPIRED) if entry.expired else own)

    async def _writes(self, entry: JournalEntry) -> list[Write]:
        """The writes of an entry; none of one that has expired."""
        if entry.expired:
            return []
        return await asyncio.to_thread(self._decode, entry.content)

    def _count_expired(self, entries: Sequence[JournalEntry]) -> None:
        if entries:
            self._metrics.expired(len(entries))
            _log.warning(
                "expired entries of the journal were skipped",
                journal=self._journal.name,
                entries=len(entries),
                first=entries[0].sequence,
                last=entries[-1].sequence,
            )

    async def _pass_over(self, entry: JournalEntry, error: InvalidRequestError) -> None:
        """Skips an entry that no shard can store, as all replicas do."""
        _log.error(
            "invalid journal entry skipped",
            journal=self._journal.name,
            place=entry.sequence,
            reason=str(error),
        )
        await self._replica.follow([], _place_of(entry))
        self._applied(entry, error)


def _place_of(entry: JournalEntry) -> str:
    """The place with the key, which shows later whether the journal still has this entry there."""
    return f"{entry.sequence} {entry.key}"


def _together(entries: Sequence[JournalEntry]) -> Iterator[Sequence[JournalEntry]]:
    """Groups of entries that share a transaction."""
    some: list[JournalEntry] = []
    size = 0
    for entry in entries:
        if some and size + len(entry.content) > _TOGETHER:
            yield some
            some, size = [], 0
        some.append(entry)
        size += len(entry.content)
    if some:
        yield some
