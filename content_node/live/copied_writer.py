"""Stores the writes of one run that copies another index into this one.

It stands beside the writer of front nodes, which a copy refuses.
"""

from collections.abc import Sequence

from winnow.content_node.live.shard import LiveShard
from winnow.deadline import Deadline
from winnow.domain.write import Write, WriteAttempt, Written
from winnow.passages.canonical import PassageDigest


class CopiedWriter:
    """A `ShardWriter` of a run of copying, which the catalog allows."""

    def __init__(self, shard: LiveShard, run: int) -> None:
        """`run` is the number of the run, which the catalog gave to it."""
        self._shard, self._run = shard, run

    async def write(
        self, writes: Sequence[Write], deadline: Deadline, attempt: WriteAttempt | None = None
    ) -> list[Written]:
        """Stores writes; raises as `LiveShard.store_copied`."""
        deadline.check("the writes were stored")
        return await self._shard.store_copied(writes, self._run)

    async def find_unchanged(
        self, puts: Sequence[PassageDigest], deadline: Deadline
    ) -> list[Written | None]:
        """Finds the puts that would change nothing; raises as `LiveShard.store_copied`."""
        return await self._shard.find_unchanged_copied(puts, self._run, deadline)
