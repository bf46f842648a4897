"""Forwards the writes of another front to a shard of this front's cluster."""

from collections.abc import Callable, Sequence

from winnow.deadline import Deadline
from winnow.domain.word_counts import WordChanges, WordCounts
from winnow.domain.write import Write, WriteAttempt, Written
from winnow.errors import UnavailableError, WinnowError
from winnow.passages.canonical import PassageDigest
from winnow.shard_writer import WordSource
from winnow.stateless.feed.storing import WriteRouter
from winnow.stateless.feed.writers import Writers


class ForwardingShardWriter:
    """A `CountingShardWriter` that writes to one replica of a shard, and retries failed writes."""

    def __init__(
        self,
        shard: int,
        router: WriteRouter,
        writers: Writers,
        words: Callable[[int], Sequence[WordSource]],
    ) -> None:
        """`words` returns a source for each replica of a shard, the one with most writes first."""
        self._shard, self._router, self._writers, self._words = shard, router, writers, words

    async def write(
        self, writes: Sequence[Write], deadline: Deadline, attempt: WriteAttempt | None = None
    ) -> list[Written]:
        """Stores writes in their order; returns when all are durable."""
        if not writes:
            return []
        try:
            written = await self._router.store_in_shard(self._shard, writes, deadline, attempt)
        finally:
            await self._writers.close_unused()
        if isinstance(written, WinnowError):
            raise written
        return written

    async def find_unchanged(
        self, puts: Sequence[PassageDigest], deadline: Deadline
    ) -> list[Written | None]:
        """Asks the replica that takes writes which puts would change nothing."""
        writer = self._writers.writer(self._writers.address(self._shard), self._shard)
        return await writer.find_unchanged(puts, deadline)

    async def word_counts_at_build(self, deadline: Deadline) -> WordCounts:
        """Returns the word counts of the whole index when it was built."""
        return await self._word_source().word_counts_at_build(deadline)

    async def changes(self, deadline: Deadline) -> WordChanges:
        """Returns how the writes to this shard have changed the counts since the build."""
        return await self._word_source().changes(deadline)

    def _word_source(self) -> WordSource:
        sources = self._words(self._shard)
        if not sources:
            raise UnavailableError(f"no node serves shard {self._shard} now")
        return sources[0]
