"""What a replica is to whoever counts words."""

from typing import Protocol

from winnow.deadline import Deadline
from winnow.domain.word_counts import WordChanges, WordCounts


class WordSource(Protocol):
    """A replica that counts words; a part of `winnow.shard_writer.ShardWriter`.

    Both methods raise a `winnow.errors.WinnowError`.
    """

    async def built_counts(self, deadline: Deadline) -> WordCounts:
        """How many passages of the whole index had each word when it was built."""

    async def changes(self, deadline: Deadline) -> WordChanges:
        """What writes to this shard changed of that."""
