"""The one interface of a shard: local, remote or fake.

The front node knows nothing else of content nodes. Implementations: `content_node.searcher` (a
shard in this process), `stateless.remote` (a shard behind gRPC), `winnow.fakes` (a scripted one).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from winnow.deadline import Deadline
from winnow.domain.answered import ShardTimings
from winnow.domain.passage import Hit
from winnow.domain.question import EncodedQuestion
from winnow.domain.reading import Reading
from winnow.domain.shard import ShardInfo


@dataclass(frozen=True, slots=True)
class Retrieved:
    """The nearest passages of one shard, nearest first."""

    hits: tuple[Hit, ...]
    timings: ShardTimings


@dataclass(frozen=True, slots=True)
class Read:
    """The readings of one shard, in no particular order."""

    readings: tuple[Reading, ...]
    timings: ShardTimings


class Searcher(Protocol):
    """A shard that retrieves and reads.

    All methods raise a `winnow.errors.WinnowError`: `DeadlineExceededError` when time ran out,
    `IdentityError` when the question was encoded by another bundle, `UnavailableError` or
    `OverloadedError` when the shard cannot serve. Cancelling a call stops its work.
    """

    async def info(self, deadline: Deadline) -> ShardInfo:
        """Which shard this is."""

    async def retrieve(
        self, question: EncodedQuestion, passages: int, deadline: Deadline
    ) -> Retrieved:
        """The `passages` nearest passages; fewer if the shard is smaller."""

    async def read(
        self,
        question: EncodedQuestion,
        hits: Sequence[Hit],
        max_answer_tokens: int,
        deadline: Deadline,
    ) -> Read:
        """Reads passages that `retrieve` named."""

    async def search(
        self, question: EncodedQuestion, passages: int, max_answer_tokens: int, deadline: Deadline
    ) -> Read:
        """Retrieves and reads at once: one round trip."""
