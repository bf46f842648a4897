"""The calls that one question makes to the shards.

Knows the question, the shards and the time; does not know which passages are worth reading.
"""

from collections.abc import Callable, Coroutine, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field, replace
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long shards are waited for, and how many passages are looked at."""

    merge_reserve: float
    """Seconds before a deadline at which shards are given up."""
    retrieve_share: float
    """Largest share of the time left that retrieval may take, so that a hung shard leaves time to
    read the others.
    """
    candidates: int = 0
    """Number of nearest passages that a hybrid retriever chooses from."""
    read_ahead: int = 0
    """Most passages read at once while readers are idle, unless more are needed."""
    word_candidates: int = 0
    """Number of best passages by words that a hybrid retriever chooses from, too. A sparse one
    chooses from at least `candidates`.
    """


@dataclass(frozen=True, slots=True)
class Calls:
    """The calls of one question."""

    searchers: Mapping[int, Searcher]
    question: Question
    encoded: EncodedQuestion
    deadline: Deadline
    _: KW_ONLY
    limits: Limits
    after: Mapping[int, int] = field(default_factory=dict)
    """The write that a shard must have before it retrieves, by shard; none if it is not listed."""
    reached: Callable[[int], int] = lambda _: 0
    """The last write that a shard is known to have."""
    unheard: frozenset[int] = frozenset()
    """Shards of which the caller named a write that nobody here has heard of."""
    recording: Recording = field(default_factory=Recording)

    @property
    def depth(self) -> RetrievalDepth:
        """How many passages each shard looks at, and how many are read."""
        passages, limits = self.question.passages_to_read, self.limits
        depth = RetrievalDepth(passages=passages, where=self.question.where)
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
        """Has every shard retrieve and read its own best passages, in one round trip."""
        calls = {shard: self._search(shard) for shard in self.searchers}
        return await self._gather(calls, self.deadline, _nothing_read)

    async def retrieve(self) -> Gathered[Retrieved]:
        """Has every shard retrieve, within its share of the time left."""
        until = self._retrieval_deadline
        calls = {shard: self._retrieve(shard, until) for shard in self.searchers}
        return await self._gather(calls, until, lambda found: not found.hits)

    def retrieve_from(self, shard: int) -> Coroutine[Any, Any, Retrieved]:
        """Has one shard retrieve, as all of them did."""
        return self._retrieve(shard, self._retrieval_deadline)

    def read(self, shard: int, hits: Sequence[Hit]) -> Coroutine[Any, Any, Read]:
        """Has one shard read passages that it retrieved."""
        searcher, most = self.searchers[shard], self.question.max_answer_tokens
        return self.recording.call(
            shard, CallKind.READ, lambda: searcher.read(self.encoded, hits, most, self.deadline)
        )

    async def read_all(
        self, reads: Mapping[int, Coroutine[Any, Any, Read]], failed: int
    ) -> Gathered[Read]:
        """Awaits the reads of some shards; `failed` others have failed before."""
        return await self._gather(reads, self.deadline, _nothing_read, failed)

    async def _gather(
        self,
        calls: Mapping[int, Coroutine[Any, Any, Result]],
        until: Deadline,
        empty: Callable[[Result], bool],
        failed: int = 0,
    ) -> Gathered[Result]:
        """Awaits one call per shard, as long as the question waits; see `scatter`.

        Minimum coverage is judged over the shards that are called, so that a shard that has
        nothing to do here takes no time from the others. It is judged over all shards, too:
        `failed` have failed before. No shard is given up before a result came that is not `empty`.

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
        depth, until = self._depth_of(shard), self._bounded(shard, self.deadline)
        return self.recording.call(
            shard, CallKind.SEARCH, lambda: searcher.search(self.encoded, depth, most, until)
        )

    def _retrieve(self, shard: int, deadline: Deadline) -> Coroutine[Any, Any, Retrieved]:
        searcher, depth = self.searchers[shard], self._depth_of(shard)
        until = self._bounded(shard, deadline)
        return self.recording.call(
            shard, CallKind.RETRIEVE, lambda: searcher.retrieve(self.encoded, depth, until)
        )

    def _depth_of(self, shard: int) -> RetrievalDepth:
        return replace(self.depth, after=self.after.get(shard, 0))

    def _bounded(self, shard: int, deadline: Deadline) -> Deadline:
        """A deadline, but an earlier one for a shard that may wait in vain: callers may name any
        write, and a call that waits takes up room.
        """
        if shard not in self.unheard:
            return deadline
        return deadline.earlier(max(deadline.left() - _LONGEST_WAIT, 0.0))

    def _why_late(self, shard: int) -> str:
        """The write that a late shard may have waited for; empty if it waited for none."""
        wanted, reached = self.after.get(shard, 0), self.reached(shard)
        return f"write {wanted} was waited for, {reached} is reached" if wanted > reached else ""

    @property
    def _retrieval_deadline(self) -> Deadline:
        return self.deadline.earlier(self.deadline.left() * (1 - self.limits.retrieve_share))


def _nothing_read(read: Read) -> bool:
    return not read.readings
