"""A shard whose writes go through a journal: published first, then applied by every replica.

A call returns when this replica has applied its writes, with the outcome and the number of each.
All replicas apply the same entries in the same order and number them alike.
"""

import asyncio
from collections.abc import Sequence
from typing import Protocol
from uuid import uuid4

from winnow.content_node.journal.messages import JournalMessages
from winnow.deadline import Deadline
from winnow.domain.word_counts import WordChanges, WordCounts
from winnow.domain.write import Write, Written
from winnow.errors import (
    DeadlineExceededError,
    LeavingError,
    NotWritableError,
    UnavailableError,
    WinnowError,
)
from winnow.journal.journal import Journal, JournalEntry
from winnow.passages.canonical import PassageDigest


class FollowingShard(Protocol):
    """A shard that follows a journal. See `content_node.live.shard`."""

    async def admit(self, writes: Sequence[Write]) -> None:
        """Raises an error for writes that the shard cannot take."""

    async def compare(
        self, puts: Sequence[PassageDigest], deadline: Deadline
    ) -> list[Written | None]:
        """Which puts need not be written, by what this replica has applied."""

    async def built_counts(self, deadline: Deadline) -> WordCounts:
        """As of `ShardWriter`."""

    async def changes(self, deadline: Deadline) -> WordChanges:
        """As of `ShardWriter`."""


class JournaledShard:
    """A `ShardWriter` in front of a shard that follows a journal."""

    def __init__(self, journal: Journal, shard: FollowingShard, messages: JournalMessages) -> None:
        """Publishes nothing yet; `shard` applies what the journal has."""
        self._journal, self._shard, self._messages = journal, shard, messages
        self._waiting: dict[str, asyncio.Future[list[Written]]] = {}
        self._ended: WinnowError | None = None
        self._fault = ""

    async def write(self, writes: Sequence[Write], deadline: Deadline) -> list[Written]:
        """Returns when the journal has the writes, and this replica, too. Raises
        InvalidRequestError if one of them is not for this shard; nothing was published. Raises
        OverloadedError if this replica has too much to merge. Raises UnavailableError if this
        replica cannot read its journal or store its entries, or the writes expired before the
        journal stored them; another replica may take them. Raises DeadlineExceededError if the
        journal has them or not; this replica has them later, if so.
        """
        self._expect_not_ended()
        await self._shard.admit(writes)  # what it says of a merge comes before what was heard
        most = await self._most_bytes()
        entries = await asyncio.to_thread(lambda: list(self._messages.encoded(writes, most)))
        written: list[Written] = []
        for content in entries:
            written += await self._written(content, deadline)
        return written

    async def find_unchanged(
        self, puts: Sequence[PassageDigest], deadline: Deadline
    ) -> list[Written | None]:
        """Which puts need not be written. Another replica may have acknowledged what this one does
        not have yet: before it says that a put is unchanged it reads the journal up to now.
        """
        found = await self._shard.compare(puts, deadline)
        if not any(found):
            return found  # writing a stored passage again does no harm
        await self._most_bytes()
        await self._written(self._messages.nothing(), deadline)
        return await self._shard.compare(puts, deadline)

    async def built_counts(self, deadline: Deadline) -> WordCounts:
        """Returns the counts of the shard as it was built."""
        return await self._shard.built_counts(deadline)

    async def changes(self, deadline: Deadline) -> WordChanges:
        """Returns the changes that this replica has applied."""
        return await self._shard.changes(deadline)

    def applied(self, entry: JournalEntry, result: list[Written] | Exception) -> None:
        """Passes the results of an entry, or its error, to the call that waits for them."""
        future = self._waiting.get(entry.key)
        if future is None or future.done():
            return
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)

    def fault(self, reason: str) -> None:
        """Notes why this replica cannot read its journal or store its entries; empty once it
        can.
        """
        self._fault = reason

    def end(self, reason: str) -> None:
        """Fails all writes from now on: the journal cannot be followed."""
        self._end(NotWritableError(f"this replica follows its journal no more: {reason}"))

    def leave(self) -> None:
        """Fails all writes from now on: the node ends, and another replica takes them."""
        self._end(LeavingError("the node is leaving"))

    def _end(self, error: WinnowError) -> None:
        self._ended = self._ended or error
        for future in self._waiting.values():
            if not future.done():
                future.set_exception(error)

    async def _most_bytes(self) -> int:
        """The largest size of an entry; opens the journal if it is not known."""
        if not self._journal.max_bytes:
            await self._journal.open()
        return self._journal.max_bytes

    async def _written(self, content: bytes, deadline: Deadline) -> list[Written]:
        self._expect_followed()  # it may have ended meanwhile, and nobody would tell what became
        key = uuid4().hex
        future: asyncio.Future[list[Written]] = asyncio.get_running_loop().create_future()
        self._waiting[key] = future
        try:
            await self._journal.publish(content, key, deadline)
            async with asyncio.timeout(max(deadline.left(), 0)):
                return await future
        except TimeoutError as error:
            raise DeadlineExceededError(
                "the journal has the writes, and this replica did not store them in time"
            ) from error
        finally:
            del self._waiting[key]
            if not future.cancel() and not future.cancelled():
                future.exception()  # or it would be missed where publishing failed, too

    def _expect_not_ended(self) -> None:
        if self._ended is not None:
            raise self._ended

    def _expect_followed(self) -> None:
        self._expect_not_ended()
        if self._fault:
            raise UnavailableError(f"this replica does not keep up with its journal: {self._fault}")
