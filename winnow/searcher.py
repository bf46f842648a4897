"""The one interface of a shard: local, remote or fake.

The front node knows nothing else of content nodes. Implementations: `content_node.searcher` (a
shard in this process), `stateless.replicas.remote` (a shard behind gRPC), `tests.fakes` (a
scripted one).
"""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
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
    """Distances of the shard's candidates, hits or not."""
    timings: ShardTimings
    _: KW_ONLY
    idle: int = 0
    """Number of the shard's readers that were free."""
    candidate_words: tuple[float, ...] = ()
    """BM25 of the shard's best passages by words, hits or not, best first."""
    sequence: int = 0
    """The last write that was known."""
    retrieved: Interval = NEVER
    """When the shard retrieved, as a part of the call."""
    passages: int | None = None
    """Number of passages that the shard held after that write; None if it did not say."""
    log_id: str = ""
    """Name of the log that `sequence` counts in; empty if there is none, or it has no name."""


@dataclass(frozen=True, slots=True)
class Read:
    """The readings of one shard, in no particular order."""

    readings: tuple[Reading, ...]
    timings: ShardTimings
    unread: int = 0
    """Number of passages that were not read before the deadline."""
    _: KW_ONLY
    sequence: int = 0
    """The last write that was known when the shard retrieved in the same round trip; else 0."""
    retrieved: Interval = NEVER
    """When the shard retrieved, as a part of the call, if it did so in the same round trip."""
    passages: int | None = None
    """Number of passages that the shard held after that write; None if it did not say."""
    log_id: str = ""
    """Name of the log that `sequence` counts in; empty if there is none, or it has no name."""


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
        """Finds the shard's passages that may be among the best of the whole cluster."""

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
        """Retrieves and reads this shard's best passages, in one round trip."""
