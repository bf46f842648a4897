"""The calls that one question makes to the shards.

Knows the question, the shards and the time; does not know which passages are worth reading.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

from winnow.deadline import Deadline
from winnow.domain.passage import Hit
from winnow.domain.question import (
    EncodedQuestion,
    PartialResults,
    Question,
    RetrievalDepth,
    Retriever,
)
from winnow.domain.shard_call import CallKind
from winnow.searcher import Read, Retrieved, Searcher
from winnow.stateless.answer.recording import Recording
from winnow.stateless.answer.scatter import Gathered, scatter
from winnow.stateless.policy.waiting import AdaptiveTimeout, WaitingSettings, of_step

Result = TypeVar("Result")
_LONGEST_WAIT = 10.0
"""Seconds that a shard may take for a question if it may have to wait in vain."""


@dataclass(frozen=True, slots=True)
class Limits:
    """How long shards are waited for, and how many passages are looked at."""

    merge_reserve: float
    """Seconds before a deadline at which shards are given up."""
    retrieve_share: float
    """Largest share of the time left that retrieval may take, so that a hung shard leaves time to
    read the others.
    """
    candidates: int = 0
    """Nearest passages among which a hybrid retriever chooses."""
    read_ahead: int = 0
    """Most passages read at once while readers are idle, unless more are needed."""
    word_candidates: int = 0
    """Best passages by words that a hybrid retriever chooses among, too; a sparse one chooses among
    at least `candidates`.
    """


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of one question."""

    searchers: Mapping[int, Searcher]
    question: Question
    encoded: EncodedQuestion
    deadline: Deadline
    limits: Limits
    after: Mapping[int, int] = field(default_factory=dict)
    """The write that a shard must have before it retrieves, by shard; any will do where none is."""
    reached: Callable[[int], int] = lambda _: 0
    """The last write that a shard is known to have."""
    unheard: frozenset[int] = frozenset()
    """Shards of which the caller named a write that nobody here has heard of."""
    recording: Recording = field(default_factory=Recording)

    @property
    def depth(self) -> RetrievalDepth:
        """How many passages each shard looks at, and how many are read."""
        passages, limits = self.question.passages_to_read, self.limits
        depth = RetrievalDepth(passages, where=self.question.where)
        match self.question.retriever:
            case Retriever.DENSE:
                return depth
            case Retriever.SPARSE:
                best = max(limits.candidates, limits.word_candidates, passages)
                return replace(depth, by_words=best)
            case Retriever.HYBRID:
                near, words = limits.candidates, limits.word_candidates
                return replace(depth, candidates=near, by_words=words)

    @property
    def partial(self) -> bool:
        """Whether an answer may leave out shards that failed."""
        return self.question.partial_results is PartialResults.ALLOW

    async def search(self) -> Gathered[Read]:
        """Every shard retrieves and reads its own best passages, in one round trip."""
        calls = {shard: self._search(shard) for shard in self.searchers}
        return await self.gather(calls, self.deadline, _nothing_read)

    async def retrieve(self) -> Gathered[Retrieved]:
        """Every shard retrieves, within its share of the time left."""
        until = self._retrieval_deadline
        calls = {shard: self._retrieve(shard, until) for shard in self.searchers}
        return await self.gather(calls, until, lambda found: not found.hits)

    def retrieve_from(self, shard: int) -> Coroutine[Any, Any, Retrieved]:
        """One shard retrieves, as all of them did."""
        return self._retrieve(shard, self._retrieval_deadline)

    def read(self, shard: int, hits: Sequence[Hit]) -> Coroutine[Any, Any, Read]:
        """One shard reads passages that it retrieved."""
        searcher, most = self.searchers[shard], self.question.max_answer_tokens
        return self.recording.call(
            shard,
            CallKind.READ,
            lambda: searcher.read(self.encoded, hits, most, self.deadline),
        )

    async def read_all(
        self, reads: Mapping[int, Coroutine[Any, Any, Read]], failed: int
    ) -> Gathered[Read]:
        """Awaits the reads of some shards; `failed` others have failed before."""
        return await self.gather(reads, self.deadline, _nothing_read, failed)

    async def gather(
        self,
        calls: Mapping[int, Coroutine[Any, Any, Result]],
        until: Deadline,
        empty: Callable[[Result], bool],
        failed: int = 0,
    ) -> Gathered[Result]:
        """Awaits one call per shard, as long as the question waits; see `scatter`.

        Minimum coverage is judged over the shards that are called: one that has nothing to do
        here takes no time from those that have. It is judged over all shards, too: `failed` have
        failed before. Nobody is given up before a result came that is not `empty`.

        Raises:
            WinnowError: a shard failed, and the question forbids partial results.

        """
        patience = self.question.patience
        settings = WaitingSettings(
            patience.min_coverage, patience.min_wait_factor, patience.max_wait_factor
        )
        settings = of_step(settings, len(self.searchers), len(calls), failed)
        waits = AdaptiveTimeout(settings if self.partial else WaitingSettings(), len(calls), until)
        return await scatter(calls, waits, self.partial, empty, self._why_late)

    def _search(self, shard: int) -> Coroutine[Any, Any, Read]:
        searcher, most = self.searchers[shard], self.question.max_answer_tokens
        depth, until = self._depth_of(shard), self._patient(shard, self.deadline)
        return self.recording.call(
            shard, CallKind.SEARCH, lambda: searcher.search(self.encoded, depth, most, until)
        )

    def _retrieve(self, shard: int, deadline: Deadline) -> Coroutine[Any, Any, Retrieved]:
        searcher, depth = self.searchers[shard], self._depth_of(shard)
        until = self._patient(shard, deadline)
        return self.recording.call(
            shard, CallKind.RETRIEVE, lambda: searcher.retrieve(self.encoded, depth, until)
        )

    def _depth_of(self, shard: int) -> RetrievalDepth:
        return replace(self.depth, after=self.after.get(shard, 0))

    def _patient(self, shard: int, deadline: Deadline) -> Deadline:
        """A deadline, but an earlier one for a shard that may wait in vain: callers name writes as
        they like, and whoever waits takes up room.
        """
        if shard not in self.unheard:
            return deadline
        return deadline.earlier(max(deadline.left() - _LONGEST_WAIT, 0.0))

    def _why_late(self, shard: int) -> str:
        """What a shard may have waited for until it was late; empty for nothing."""
        wanted, reached = self.after.get(shard, 0), self.reached(shard)
        return f"write {wanted} was waited for, {reached} is reached" if wanted > reached else ""

    @property
    def _retrieval_deadline(self) -> Deadline:
        return self.deadline.earlier(self.deadline.left() * (1 - self.limits.retrieve_share))


def _nothing_read(read: Read) -> bool:
    return not read.readings
