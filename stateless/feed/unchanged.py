"""Finds puts that change nothing before they are encoded. Shards compare their digests.

A shard compares a put with all acknowledged writes. The result is as if the put had been stored at
that moment: later writes of other callers still count. An id that the same call or stream writes
twice is not compared, because its earlier write may not be stored yet and the later one must count.

The vector of an unchanged put would equal the stored vector: it depends only on title, text and
encoder, and a shard refuses digests of another encoder.
"""

import asyncio
from collections import Counter, defaultdict
from collections.abc import Collection, Sequence

from winnow.deadline import Deadline
from winnow.domain.write import Position
from winnow.errors import WinnowError
from winnow.passages.canonical import PassageDigest
from winnow.stateless.feed.storing import RecordWrite, StoredWrite
from winnow.stateless.feed.writers import Writers

_TIME_SHARE = 0.25
"""Share of the remaining time for comparing. Puts that are not compared in time are encoded."""


class UnchangedPuts:
    """Asks shards which puts contain passages that are already stored."""

    def __init__(
        self, writers: Writers, record_write: RecordWrite = lambda _shard, _sequence, _log_id: None
    ) -> None:
        """`record_write` is called with the last write of a shard in which a put was unchanged."""
        self._writers, self._record_write = writers, record_write

    async def find(
        self, puts: Sequence[PassageDigest], deadline: Deadline, earlier_ids: Collection[str] = ()
    ) -> list[StoredWrite | None]:
        """Returns for each put its outcome if it changes nothing, or None if it must be stored.

        `earlier_ids`: ids that earlier messages of the same stream are writing. Errors of shards
        are ignored, because storing would raise them again.
        """
        results: list[StoredWrite | None] = [None] * len(puts)
        until = deadline.earlier(deadline.left() * (1 - _TIME_SHARE))
        async with asyncio.TaskGroup() as group:
            for shard, indices in self._comparable(puts, earlier_ids).items():
                group.create_task(self._find_in_shard(shard, puts, indices, until, results))
        return results

    def _comparable(
        self, puts: Sequence[PassageDigest], earlier_ids: Collection[str]
    ) -> dict[int, list[int]]:
        """The indices of the puts that can be compared, by shard; empty without any shard."""
        try:
            partition = self._writers.partition
        except WinnowError:
            return {}
        counts = Counter(put.id for put in puts)
        indices: defaultdict[int, list[int]] = defaultdict(list)
        for index, put in enumerate(puts):
            if counts[put.id] == 1 and put.id not in earlier_ids:
                indices[partition.shard_of(put.id)].append(index)
        return indices

    async def _find_in_shard(
        self,
        shard: int,
        puts: Sequence[PassageDigest],
        indices: Sequence[int],
        deadline: Deadline,
        results: list[StoredWrite | None],
    ) -> None:
        try:
            writer = self._writers.writer(self._writers.address(shard), shard)
            written = await writer.find_unchanged([puts[index] for index in indices], deadline)
        except WinnowError:
            return
        for index, each in zip(indices, written, strict=True):
            if each is not None:
                results[index] = each.outcome, Position(shard, each.sequence)
        if unchanged := [each for each in written if each is not None]:
            last = max(unchanged, key=lambda each: each.sequence)
            self._record_write(shard, last.sequence, last.log_id)
