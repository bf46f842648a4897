"""Follows a journal: applies the writes of its entries to a shard, in order, each once.

The position of the last entry is stored in the same transaction as its writes. So no entry is
applied twice or left out, even if this process ends at any moment. For an expired entry, only the
position is stored.

After the entry that splits the shard, the shard stores nothing more: its halves follow the journal
from there.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from contextlib import aclosing
from itertools import chain, islice
from typing import Protocol

import structlog

from winnow.content_node.journal.messages import JournalContent
from winnow.content_node.journal.metrics import JournalMetrics
from winnow.content_node.live.half_log import journal_of_log
from winnow.deadline import Sleep
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
_RETRY_INTERVAL = 0.25
"""Seconds until a failed read of the journal, or a failed write, is repeated."""
_FAILURES_PER_WARNING = 40
"""Failures in a row for which one warning is logged."""
_BEFORE_FIRST_ENTRY = "0"
"""The position before the first entry."""
_BATCH_BYTES = 2_000_000
"""Bytes of entries that share a transaction: some hundred passages, some tenths of a second."""
_EXPIRED = (
    "the journal stored the writes after they had expired, so no replica applies them: send them "
    "again; if that does not help, compare the clocks of this node and of the journal"
)
Decode = Callable[[bytes], JournalContent]
OnApplied = Callable[[JournalEntry, list[Written] | Exception], None]
OnFault = Callable[[str], None]
OnContact = Callable[[int | None], None]


class JournalReplica(Protocol):
    """The interface of a shard that stores the writes of a journal: a `LiveShard`."""

    @property
    def journal_position(self) -> str:
        """The number and the key of the last applied entry; empty before the first one."""

    @property
    def log_id(self) -> str:
        """The id of the replica's own log; empty before it has one."""

    @property
    def takes_writes(self) -> bool:
        """Whether the replica takes writes; false once its halves do."""

    async def store_from_journal(
        self, writes: Sequence[Write], journal_position: str, log_id: str = ""
    ) -> list[Written]:
        """Stores writes and the position of their last entry in one transaction.

        If the shard has no log yet, a log with the id `log_id` is created.

        Raises InvalidRequestError if a write is not for this shard. Raises OverloadedError if the
        shard cannot take the writes now.
        """

    async def end_for_halves(self) -> None:
        """Refuses all later writes, because the halves of the shard take them."""


class JournalFollower:
    """Keeps a replica up to date with a journal."""

    def __init__(
        self,
        *,
        journal: Journal,
        replica: JournalReplica,
        decode: Decode,
        on_applied: OnApplied,
        metrics: JournalMetrics,
        sleep: Sleep = asyncio.sleep,
        on_fault: OnFault = lambda _: None,
        on_contact: OnContact = lambda _: None,
    ) -> None:
        """`on_applied` is called with the results of each entry once they are durable here.

        `on_fault` is called with the reason why entries cannot be read or stored, and with an empty
        reason once they can. `on_contact` is called with the number of entries that the replica
        lacks after each delivery, and with None while the journal cannot be followed.
        """
        self._journal, self._replica, self._decode = journal, replica, decode
        self._on_applied, self._on_fault = on_applied, on_fault
        self._on_contact = on_contact
        self._metrics, self._sleep = metrics, sleep

    async def run(self) -> None:
        """Follows the journal until it is cancelled, or until the shard is split.

        Raises IdentityError if this is not the journal that was followed before, or if it lost the
        next entries.
        """
        failures = 0
        while self._replica.takes_writes:
            try:
                async with aclosing(self._journal.read(*await self._last_entry())) as deliveries:
                    async for delivered in deliveries:
                        await self._apply_batch(delivered)
                        if not self._replica.takes_writes:
                            return
                        self._metrics.record_followed(delivered.backlog)
                        self._on_contact(delivered.backlog)
                        self._on_fault("")
                        if failures:
                            _log.info("the journal is followed again", journal=self._journal.name)
                        failures = 0
            except IdentityError:
                self._metrics.record_lost()
                self._on_contact(None)
                raise
            except WinnowError as error:
                self._metrics.record_lost()
                self._on_contact(None)
                self._on_fault(str(error))
                if failures % _FAILURES_PER_WARNING == 0:
                    _log.warning("the journal is not followed; trying again", reason=str(error))
                failures += 1
                await self._sleep(_RETRY_INTERVAL)

    async def _last_entry(self) -> tuple[int, str]:
        """Opens the journal; returns the number and the key of the last stored entry.

        A new replica first creates its log, with the id of the journal.
        """
        journal_id = await self._journal.open()
        log_id = self._replica.log_id
        if log_id.startswith(JOURNAL) and journal_of_log(log_id) != journal_id:
            raise IdentityError(
                f"{self._journal.name} is not the journal that this shard has followed so far: "
                "correct --journal, or restore that journal; or, to go on without it, build a new "
                "index with the writes of this shard: `winnow index build --passages INDEX --out "
                "NEW`"
            )
        if log_id and not self._replica.journal_position:
            raise IdentityError(
                "the shard took writes before it followed a journal, so its replicas lack them: "
                "start from the index as it was built, and feed the writes again"
            )
        if not self._replica.journal_position:
            await self._replica.store_from_journal([], _BEFORE_FIRST_ENTRY, journal_id)
        number, _, key = self._replica.journal_position.partition(" ")
        return int(number), key

    async def _apply_batch(self, delivered: EntryBatch) -> None:
        """Stores entries, several in a transaction, because each transaction waits for the disk."""
        remaining = len(delivered.entries)
        for batch in _transaction_batches(delivered.entries):
            await self._store_entries(batch)
            if not self._replica.takes_writes:
                return
            remaining -= len(batch)
            self._metrics.record_applied(
                len(batch), batch[-1].sequence, remaining + delivered.backlog
            )

    async def _store_entries(self, entries: Sequence[JournalEntry]) -> None:
        """Stores entries in one transaction, or one by one if that fails.

        Stores none after the entry that splits the shard.
        """
        try:
            contents = [await self._decode_entry(entry) for entry in entries]
            if any(content.is_split for content in contents) and len(entries) > 1:
                await self._store_each(entries)
                return
            if contents[0].is_split:
                await self._replica.end_for_halves()
                self._on_applied(entries[0], [])
                return
            writes = [content.writes for content in contents]
            results = await self._replica.store_from_journal(
                list(chain.from_iterable(writes)), _position_of(entries[-1])
            )
        except (InvalidRequestError, OverloadedError) as error:
            if len(entries) > 1:  # one entry may be invalid, or the batch too large
                await self._store_each(entries)
                return
            if isinstance(error, OverloadedError):
                raise
            await self._skip_entry(entries[0], error)
            return
        self._count_expired([each for each in entries if each.expired])
        remaining = iter(results)
        for entry, entry_writes in zip(entries, writes, strict=True):
            written = list(islice(remaining, len(entry_writes)))
            self._on_applied(entry, UnavailableError(_EXPIRED) if entry.expired else written)

    async def _store_each(self, entries: Sequence[JournalEntry]) -> None:
        """Stores entries one by one, up to the one that splits the shard."""
        for entry in entries:
            await self._store_entries([entry])
            if not self._replica.takes_writes:
                return

    async def _decode_entry(self, entry: JournalEntry) -> JournalContent:
        """Decodes an entry. An expired one is empty."""
        if entry.expired:
            return JournalContent([])
        return await asyncio.to_thread(self._decode, entry.content)

    def _count_expired(self, entries: Sequence[JournalEntry]) -> None:
        if entries:
            self._metrics.record_expired(len(entries))
            _log.warning(
                "expired entries of the journal were skipped",
                journal=self._journal.name,
                entries=len(entries),
                first=entries[0].sequence,
                last=entries[-1].sequence,
            )

    async def _skip_entry(self, entry: JournalEntry, error: InvalidRequestError) -> None:
        """Skips an invalid entry, as all replicas do."""
        _log.error(
            "invalid journal entry skipped",
            journal=self._journal.name,
            place=entry.sequence,
            reason=str(error),
        )
        await self._replica.store_from_journal([], _position_of(entry))
        self._on_applied(entry, error)


def _position_of(entry: JournalEntry) -> str:
    """Returns the number and the key of an entry; the key later identifies the entry."""
    return f"{entry.sequence} {entry.key}"


def _transaction_batches(entries: Sequence[JournalEntry]) -> Iterator[Sequence[JournalEntry]]:
    """Yields the entries in batches that each share a transaction."""
    batch: list[JournalEntry] = []
    size = 0
    for entry in entries:
        if batch and size + len(entry.content) > _BATCH_BYTES:
            yield batch
            batch, size = [], 0
        batch.append(entry)
        size += len(entry.content)
    if batch:
        yield batch
