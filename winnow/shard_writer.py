"""The interface of a shard that takes writes: local, remote or fake.

Implementations: `content_node.live` (a shard in this process), `stateless.feed.remote` (a node
behind gRPC), `tests.fakes` (a scripted shard).
"""

from collections.abc import Sequence
from typing import Protocol

from winnow.deadline import Deadline
from winnow.domain.word_counts import WordChanges, WordCounts
from winnow.domain.write import Write, Written
from winnow.passages.canonical import PassageDigest


class ShardWriter(Protocol):
    """A shard that stores passages and deletes them.

    All methods raise a `winnow.errors.WinnowError`: `NotWritableError` if the shard takes no
    writes, `OverloadedError` if too many writes wait or the disk is full, `UnavailableError` if it
    cannot be reached.
    """

    async def write(self, writes: Sequence[Write], deadline: Deadline) -> list[Written]:
        """Stores writes in their order; returns one result for each when they are durable.

        A cancelled call may or may not store its writes; sending them again does no harm. The
        writes may be converted while they are read, so they are read in a thread.
        """

    async def find_unchanged(
        self, puts: Sequence[PassageDigest], deadline: Deadline
    ) -> list[Written | None]:
        """For each put the outcome if it changes nothing, and None if it has to be written.

        A put is judged by every write that was acknowledged before the call. A shard that cannot
        tell returns None.
        """

    async def built_counts(self, deadline: Deadline) -> WordCounts:
        """The passages of the whole index that had each word when it was built."""

    async def changes(self, deadline: Deadline) -> WordChanges:
        """The changes of these counts by writes to this shard."""
