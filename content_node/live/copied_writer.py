"""Stores the writes of one run that copies another index into this one.

It stands beside the writer of front nodes, which a copy refuses.
"""

from collections.abc import Sequence
from typing import Protocol

from winnow.deadline import Deadline
from winnow.domain.write import Write, WriteAttempt, Written
from winnow.passages.canonical import PassageDigest


class TakesCopies(Protocol):
    """A shard that takes the writes of a run of copying, directly or through its journal."""

    async def store_copied(
        self, writes: Sequence[Write], run: int, deadline: Deadline
    ) -> list[Written]:
        """Stores writes of the index of which this shard's index is a copy.

        Raises IdentityError if the shard is not closed for this run. Raises as a `ShardWriter`.
        """

    async def find_unchanged_copied(
        self, puts: Sequence[PassageDigest], run: int, deadline: Deadline
    ) -> list[Written | None]:
        """Finds the puts that would change nothing; raises as `store_copied`."""


class CopiedWriter:
    """A `ShardWriter` of a run of copying, which the catalog allows."""

    def __init__(self, shard: TakesCopies, run: int) -> None:
        """`run` is the number of the run, which the catalog gave to it."""
        self._shard, self._run = shard, run

    async def write(
        self, writes: Sequence[Write], deadline: Deadline, attempt: WriteAttempt | None = None
    ) -> list[Written]:
        """Stores writes; raises as `TakesCopies.store_copied`."""
        return await self._shard.store_copied(writes, self._run, deadline)

    async def find_unchanged(
        self, puts: Sequence[PassageDigest], deadline: Deadline
    ) -> list[Written | None]:
        """Finds the puts that would change nothing; raises as `TakesCopies.store_copied`."""
        return await self._shard.find_unchanged_copied(puts, self._run, deadline)
