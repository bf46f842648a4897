"""The one interface of a shard that takes writes: local, remote or fake.

Implementations: `content_node.live` (a shard in this process), `stateless.feed.remote` (a node
behind gRPC), `tests.fakes` (a scripted one).
"""

from collections.abc import Sequence
from typing import Protocol

from winnow.deadline import Deadline
from winnow.domain.word_counts import WordChanges, WordCounts
from winnow.domain.write import Write, Written
from winnow.passages.canonical import PassageDigest


class ShardWriter(Protocol):
    """A shard that stores passages and deletes them.

    All methods raise a `winnow.errors.WinnowError`: `NotWritableError` where the shard takes no
    writes, `OverloadedError` when too much is waiting or the disk is full, `UnavailableError` when
    it cannot be reached.
    """

    async def write(self, writes: Sequence[Write], deadline: Deadline) -> list[Written]:
        """Stores writes in their order; returns when they are durable: one result for each.

        Cancelling a call may or may not store its writes; sending them again does no harm.
        """

    async def find_unchanged(
        self, puts: Sequence[PassageDigest], deadline: Deadline
    ) -> list[Written | None]:
        """What becomes of each put if it changes nothing; None if it has to be written.

        It is judged by every write that was acknowledged before the call, and later writes count
        as later ones. A shard that cannot tell says None.
        """

    async def built_counts(self, deadline: Deadline) -> WordCounts:
        """How many passages of the whole index had each word when it was built."""

    async def changes(self, deadline: Deadline) -> WordChanges:
        """What writes to this shard changed of that."""
