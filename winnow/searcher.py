"""The one interface of a shard: local, remote or fake.

The front node knows nothing else of content nodes. Implementations: `content_node.searcher` (a
shard in this process), `stateless.replicas.remote` (a shard behind gRPC), `tests.fakes` (a
scripted one).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from winnow.deadline import Deadline
from winnow.domain.answered import ShardTimings
from winnow.domain.passage import Hit
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.reading import Reading
from winnow.domain.shard import ShardInfo
from winnow.domain.shard_call import NEVER, Interval


@dataclass(frozen=True, slots=True)
class Retrieved:
    """Passages of one shard, best first: all that may be chosen from the whole cluster."""

    hits: tuple[Hit, ...]
    candidate_distances: tuple[float, ...]
    """Distances of the shard's candidates, also of those that are no hits."""
    timings: ShardTimings
    idle: int = 0
    """Passages that whoever retrieved could have begun to read at once."""
    candidate_words: tuple[float, ...] = ()
    """BM25 of the shard's best passages by words, best first, also of those that are no hits."""
    sequence: int = 0
    """The last write that was known."""
    retrieved: Interval = NEVER
    """When it was retrieved, as a part of the call."""
    passages: int | None = None
    """Passages that the shard held after that write; None if it did not say."""
    log_id: str = ""
    """Names the log that `sequence` counts in; empty if there is none, or it is not named."""


@dataclass(frozen=True, slots=True)
class Read:
    """The readings of one shard, in no particular order."""

    readings: tuple[Reading, ...]
    timings: ShardTimings
    unread: int = 0
    """Passages that were asked for and not read before the deadline."""
    sequence: int = 0
    """The last write that was known where it was retrieved in the same round trip; else 0."""
    retrieved: Interval = NEVER
    """When it was retrieved, as a part of the call, if it was in the same round trip."""
    passages: int | None = None
    """Passages that the shard held after that write; None if it did not say."""
    log_id: str = ""
    """Names the log that `sequence` counts in; empty if there is none, or it is not named."""


class Searcher(Protocol):
    """A shard that retrieves and reads.

    All methods raise a `winnow.errors.WinnowError`: `DeadlineExceededError` when time ran out,
    `IdentityError` when the question was encoded by another bundle, `UnavailableError` or
    `OverloadedError` when the shard cannot serve. Cancelling a call stops its work.
    """

    async def info(self, deadline: Deadline) -> ShardInfo:
        """Which shard this is."""

    async def retrieve(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Retrieved:
        """What may be among the passages to be read, of all candidates of all shards."""

    async def read(
        self,
        question: EncodedQuestion,
        hits: Sequence[Hit],
        max_answer_tokens: int,
        deadline: Deadline,
    ) -> Read:
        """Reads passages that `retrieve` named."""

    async def search(
        self,
        question: EncodedQuestion,
        depth: RetrievalDepth,
        max_answer_tokens: int,
        deadline: Deadline,
    ) -> Read:
        """Retrieves and reads this shard's best passages at once: one round trip."""
