"""The interface to the word counts of a replica."""

from typing import Protocol

from winnow.deadline import Deadline
from winnow.domain.word_counts import WordChanges, WordCounts


class WordSource(Protocol):
    """A replica that counts words; a part of `winnow.shard_writer.ShardWriter`.

    Both methods raise a `winnow.errors.WinnowError`.
    """

    async def built_counts(self, deadline: Deadline) -> WordCounts:
        """Number of passages of the whole index that had each word when it was built."""

    async def changes(self, deadline: Deadline) -> WordChanges:
        """Changes of these counts by writes to this shard."""
