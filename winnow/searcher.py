"""The interface of a shard, whether local, remote or fake.

The front node uses content nodes only through it. Implementations: `content_node.searcher` (a shard
in this process), `stateless.replicas.remote` (a shard behind gRPC), `tests.fakes` (a scripted
shard).
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
    """The result of a retrieval on one shard, with its hits best first."""

    hits: tuple[Hit, ...]
    candidate_distances: tuple[float, ...]
    """Distances of the shard's candidates, whether they became hits or not."""
    timings: ShardTimings
    _: KW_ONLY
    idle_readers: int = 0
    """Number of idle readers of the shard."""
    candidate_words: tuple[float, ...] = ()
    """BM25 scores of the shard's best passages by words, best first, whether hits or not."""
    sequence: int = 0
    """Sequence number of the last write that the retrieval saw."""
    retrieved: Interval = NEVER
    """When the shard retrieved, as a part of the call."""
    passages: int | None = None
    """Number of passages that the shard held after that write; None if it did not say."""
    log_id: str = ""
    """Name of the log that `sequence` counts in; empty if there is none, or it has no name."""


@dataclass(frozen=True, slots=True)
class Read:
    """The readings of one shard, in any order."""

    readings: tuple[Reading, ...]
    timings: ShardTimings
    unread: int = 0
    """Number of requested passages that were not read before the deadline."""
    _: KW_ONLY
    sequence: int = 0
    """Sequence number of the last write that the retrieval of this call saw; 0 without one."""
    retrieved: Interval = NEVER
    """When this call retrieved, as a part of the call; NEVER if it did not retrieve."""
    passages: int | None = None
    """Number of passages that the shard held after that write; None if it did not say."""
    log_id: str = ""
    """Name of the log that `sequence` counts in; empty if there is none, or it has no name."""


class Searcher(Protocol):
    """A shard that retrieves and reads passages.

    All methods raise a `winnow.errors.WinnowError`: `DeadlineExceededError` after the deadline,
    `IdentityError` if the question was encoded by another bundle, `UnavailableError` or
    `OverloadedError` if the shard cannot serve the call. Cancelling a call stops its work.
    """

    async def info(self, deadline: Deadline) -> ShardInfo:
        """Returns the description of the shard."""

    async def retrieve(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Retrieved:
        """Returns the shard's passages that may be among the best of the whole cluster."""

    async def read(
        self,
        question: EncodedQuestion,
        hits: Sequence[Hit],
        max_answer_tokens: int,
        deadline: Deadline,
    ) -> Read:
        """Reads passages that `retrieve` returned."""

    async def search(
        self,
        question: EncodedQuestion,
        depth: RetrievalDepth,
        max_answer_tokens: int,
        deadline: Deadline,
    ) -> Read:
        """Retrieves and reads this shard's best passages in one call."""
