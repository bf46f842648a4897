"""The interface of a shard that accepts writes, whether local, remote or fake.

Implementations: `content_node.live` (in this process), `winnow.shard_service.remote` (over
gRPC), `tests.fakes` (scripted).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

from winnow.deadline import Deadline
from winnow.domain.shard import ShardInfo
from winnow.domain.word_counts import WordChanges, WordCounts
from winnow.domain.write import Write, WriteAttempt, Written
from winnow.passages.canonical import PassageDigest


class WordSource(Protocol):
    """The passage counts of words: how many passages contain each word.

    Both methods raise a `winnow.errors.WinnowError` if they fail.
    """

    async def word_counts_at_build(self, deadline: Deadline) -> WordCounts:
        """Returns the counts of the whole index when it was built."""

    async def changes(self, deadline: Deadline) -> WordChanges:
        """Returns the changes of the counts by writes to this shard since the build."""


class ShardWriter(Protocol):
    """A shard that stores and deletes passages.

    All methods raise a `winnow.errors.WinnowError`: `NotWritableError` if the shard accepts no
    writes, `OverloadedError` if too many writes wait or the disk is full, `UnavailableError` if the
    shard cannot be reached.
    """

    async def write(
        self, writes: Sequence[Write], deadline: Deadline, attempt: WriteAttempt | None = None
    ) -> list[Written]:
        """Stores writes in order; returns a result for each once all are durable.

        A call that fails or is cancelled may store its writes, but not after the deadline.
        `attempt` identifies the writes of a caller that sends them again after a failure: an
        earlier attempt is never stored after a later one. Without it, that may happen.
        `writes` may convert messages on access, so access it in a thread.
        """

    async def find_unchanged(
        self, puts: Sequence[PassageDigest], deadline: Deadline
    ) -> list[Written | None]:
        """Returns the outcome of each put that would change nothing; None for the other puts.

        The shard compares the puts with all writes that were acknowledged before the call. None may
        also mean that the shard cannot tell.
        """


class CountingShardWriter(ShardWriter, WordSource, Protocol):
    """A `ShardWriter` that is also a `WordSource`."""


@dataclass(frozen=True, slots=True)
class WritableShard:
    """A shard that accepts writes, and the identities that writes must match."""

    writer: CountingShardWriter
    info: ShardInfo
    encoding_fingerprint: str
    """Fingerprint of the encoder that computed the shard's vectors."""
    copied_writer: Callable[[int], ShardWriter] | None = None
    """Returns the writer of a run of copying, by its number; None if the shard cannot be a copy."""


class WritableShards(Protocol):
    """The shards of a node that accepts writes."""

    def writing(self, shard: int | None) -> WritableShard:
        """Returns a shard to write to; None stands for the only shard of the node.

        Raises UnavailableError if the node does not serve the shard now.
        """


WritableOfIndex = Callable[[str], WritableShards]
"""Returns the shards that a node has of an index by its id, which is empty for the default index.
"""
