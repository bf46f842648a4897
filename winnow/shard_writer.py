"""The interface of a shard that accepts writes, whether local, remote or fake.

Implementations: `content_node.live` (a shard in this process), `stateless.feed.remote` (a node
behind gRPC), `tests.fakes` (a scripted shard).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from winnow.deadline import Deadline
from winnow.domain.shard import ShardInfo
from winnow.domain.word_counts import WordChanges, WordCounts
from winnow.domain.write import Write, Written
from winnow.passages.canonical import PassageDigest


class WordSource(Protocol):
    """A shard that counts the passages that contain each word.

    Both methods raise a `winnow.errors.WinnowError`.
    """

    async def built_counts(self, deadline: Deadline) -> WordCounts:
        """Returns the passage count of each word in the whole index, as it was built."""

    async def changes(self, deadline: Deadline) -> WordChanges:
        """Returns how writes to this shard have changed these counts."""


class ShardWriter(Protocol):
    """A shard that stores and deletes passages.

    All methods raise a `winnow.errors.WinnowError`: `NotWritableError` if the shard accepts no
    writes, `OverloadedError` if too many writes wait or the disk is full, `UnavailableError` if the
    shard cannot be reached.
    """

    async def write(self, writes: Sequence[Write], deadline: Deadline) -> list[Written]:
        """Stores writes in order; returns a result for each once all are durable.

        A cancelled call may or may not store its writes; sending them again is harmless. `writes`
        may convert messages on access, so access it in a thread.
        """

    async def find_unchanged(
        self, puts: Sequence[PassageDigest], deadline: Deadline
    ) -> list[Written | None]:
        """Returns, for each put, its outcome if it would change nothing, otherwise None.

        The shard compares with all writes acknowledged before the call. None also means that it
        cannot tell.
        """


class CountingShardWriter(ShardWriter, WordSource, Protocol):
    """A shard that stores passages, and counts their words."""


@dataclass(frozen=True, slots=True)
class WritableShard:
    """A shard that stores writes, and what they have to match."""

    writer: CountingShardWriter
    info: ShardInfo
    encoding_fingerprint: str
    """Fingerprint of the encoder of the vectors."""


class WritableShards(Protocol):
    """The shards of a node that takes writes."""

    def writing(self, shard: int | None) -> WritableShard:
        """Returns a shard; None stands for the only one of the node.

        Raises UnavailableError if the node does not serve the shard now.
        """
