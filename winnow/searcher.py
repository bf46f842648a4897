"""The interfaces of a shard and of a content node, whether local, remote or fake.

The front node uses content nodes only through these interfaces. Implementations of a shard:
`content_node.searcher` (in this process), `stateless.replicas.remote` (over gRPC), `tests.fakes`
(scripted). Implementations of a node: `content_node.served_shards`, `stateless.replicas.remote`,
`tests.fakes`.
"""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from typing import NamedTuple, Protocol

from winnow.deadline import Deadline
from winnow.domain.answered import ShardTimings
from winnow.domain.passage import Hit
from winnow.domain.question import EncodedQuestion, RetrievalDepth
from winnow.domain.reading import Reading
from winnow.domain.shard import NodeReport, ShardInfo
from winnow.domain.shard_call import NEVER, Interval
from winnow.passage_source import PassageSource

MAX_CALL_SHARDS = 64
"""Maximum number of shards per call to a content node. The reply has about 3 KB per shard."""
MAX_POLLED_INDEXES = 1_000
"""Maximum number of named indexes of one poll of a content node."""


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The result of a retrieval on one shard."""

    hits: tuple[Hit, ...]
    """Hits, best first."""
    candidate_distances: tuple[float, ...]
    """Distances of all candidates of the shard, including those that did not become hits."""
    timings: ShardTimings
    _: KW_ONLY
    idle_readers: int = 0
    """Number of idle readers of the shard."""
    candidate_words: tuple[float, ...] = ()
    """BM25 scores of the shard's best passages by words, best first; not all become hits."""
    sequence: int = 0
    """Sequence number of the last write that the retrieval saw."""
    retrieved: Interval = NEVER
    """Time of the retrieval, relative to the start of the call."""
    passages: int | None = None
    """Number of passages that the shard held after write `sequence`; None if not reported."""
    log_id: str = ""
    """Name of the log that numbers the writes; empty if there is no log, or it has no name."""
    late_interaction: bool = False
    """Whether the hits were ranked by late interaction."""


@dataclass(frozen=True, slots=True)
class Read:
    """The result of reading passages on one shard."""

    readings: tuple[Reading, ...]
    """Readings, in any order."""
    timings: ShardTimings
    unread: int = 0
    """Number of requested passages that were not read before the deadline."""
    _: KW_ONLY
    sequence: int = 0
    """Sequence number of the last write that the retrieval saw; 0 if the call did not retrieve."""
    retrieved: Interval = NEVER
    """Time of the retrieval, relative to the start of the call; NEVER without a retrieval."""
    passages: int | None = None
    """Number of passages that the shard held after write `sequence`; None if not reported."""
    log_id: str = ""
    """Name of the log that numbers the writes; empty if there is no log, or it has no name."""


class Searcher(Protocol):
    """A shard that retrieves and reads passages.

    All methods raise a `winnow.errors.WinnowError`: `DeadlineExceededError` after the deadline,
    `IdentityError` if the question was encoded by another bundle, `UnavailableError` or
    `OverloadedError` if the shard cannot serve the call. Cancelling a call stops its work.
    """

    @property
    def passages(self) -> PassageSource:
        """The passages of the shard; raises UnavailableError if it does not serve calls now."""

    async def info(self, deadline: Deadline) -> ShardInfo:
        """Returns the description of the shard."""

    async def retrieve(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Retrieved:
        """Returns the passages of the shard that may be among the best of the whole index."""

    async def read(
        self, question: EncodedQuestion, hits: Sequence[Hit], deadline: Deadline
    ) -> Read:
        """Reads passages that `retrieve` returned."""

    async def search(
        self, question: EncodedQuestion, depth: RetrievalDepth, deadline: Deadline
    ) -> Read:
        """Retrieves and reads this shard's best passages in one call."""


class RequestedShard(NamedTuple):
    """One of the shards of a call that retrieves from several shards."""

    shard: int
    after: int = 0
    """Sequence number of the last write that the shard must have; 0 for none."""


class ContentNode(Protocol):
    """A content node, which serves any number of shards of an index."""

    async def report(self, deadline: Deadline) -> NodeReport:
        """Returns the shards of the node, and why it does not serve others.

        Raises a `winnow.errors.WinnowError`: `LeavingError` while the node is shutting down,
        `DeadlineExceededError` or `UnavailableError` if it does not reply.
        """

    def searcher(self, shard: int | None) -> Searcher:
        """Returns a searcher of one shard; None stands for the only shard of the node.

        Raises UnavailableError if the node does not have the shard. Calls of the searcher raise it,
        too, while the node does not serve the shard.
        """

    async def retrieve(
        self,
        question: EncodedQuestion,
        depth: RetrievalDepth,
        shards: Sequence[RequestedShard],
        deadline: Deadline,
    ) -> Sequence[Retrieved | Exception]:
        """Retrieves from up to `MAX_CALL_SHARDS` shards; returns a result for each, in order.

        The result of a failed shard is its error. Ignores `depth.after`. May leave out hits and
        candidates that cannot matter, as `winnow.candidates.joint` does. Raises a WinnowError if
        the whole call fails.
        """


NodeOfIndex = Callable[[str], ContentNode]
"""Returns the shards that a node has of an index by its id, which is empty for the default index.

They are none if the node has no such index.
"""
