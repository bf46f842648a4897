"""Sends the calls of one question to the shards, with their deadlines and depths.

This module knows the question, the shards and the deadline. It does not choose passages.
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
    WaitPolicy,
)
from winnow.domain.shard_call import CallKind
from winnow.searcher import Read, Retrieved, Searcher
from winnow.stateless.answer.recording import CallRecorder
from winnow.stateless.answer.scatter import NO_CALLS, ScatterResult, scatter
from winnow.stateless.policy.waiting import AdaptiveTimeout, policy_of_step
from winnow.stateless.replicas.joint import JointCalls
from winnow.stateless.replicas.partial import SendJoint, Shards

Result = TypeVar("Result")
_MAX_WAIT_FOR_UNKNOWN_WRITE = 10.0
"""Maximum seconds for a shard if the question names a write that may not exist."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchLimits:
    """Limits of the time for shards, and of the passages that they rank and read."""

    merge_reserve: float
    """Seconds before the deadline of a question at which late shards are given up."""
    retrieve_share: float
    """Share of the remaining time that retrieval may take.

    The rest is left for reading, even if a shard hangs.
    """
    candidates: int = 0
    """Number of nearest passages that a hybrid retriever ranks."""
    read_ahead: int = 0
    """Maximum number of concurrent reads if some are speculative."""
    word_candidates: int = 0
    """Number of best passages by words that a hybrid retriever also ranks.

    A sparse retriever ranks at least `candidates` passages.
    """


@dataclass(frozen=True, slots=True)
class ShardCalls:
    """Sends the calls of one question to its shards. All mappings are by shard."""

    searchers: Mapping[int, Searcher]
    question: Question
    encoded: EncodedQuestion
    deadline: Deadline
    _: KW_ONLY
    limits: SearchLimits
    required_writes: Mapping[int, int] = field(default_factory=dict)
    """Number of the write that a shard must have before it retrieves; a missing shard needs none.
    """
    last_known_write: Callable[[int], int] = lambda _: 0
    """Returns the number of the last write that a shard is known to have."""
    unknown_writes: frozenset[int] = frozenset()
    """Shards for which the caller named a write that this front does not know."""
    recorder: CallRecorder = field(default_factory=CallRecorder)
    joint: JointCalls | None = None
    """Sends joint calls; None to call each shard alone."""

    @property
    def depth(self) -> RetrievalDepth:
        """How many passages each shard ranks, and how many are read."""
        passages, limits = self.question.passages_to_read, self.limits
        depth = RetrievalDepth(passages=passages, where=self.question.where)
        match self.question.retriever:
            case Retriever.DENSE:
                return depth
            case Retriever.SPARSE:
                by_words = max(limits.candidates, limits.word_candidates, passages)
                return replace(depth, by_words=by_words)
            case Retriever.HYBRID:
                candidates, by_words = limits.candidates, limits.word_candidates
                return replace(depth, candidates=candidates, by_words=by_words)

    @property
    def uses_late_interaction(self) -> bool:
        """Whether passages are ranked by late interaction."""
        return self.encoded.tokens is not None and self.depth.candidates > 0

    @property
    def allows_partial(self) -> bool:
        """Whether an answer may leave out shards that failed."""
        return self.question.partial_results is PartialResults.ALLOW

    async def search_all(self) -> ScatterResult[Read]:
        """Makes every shard retrieve and read its own best passages, in one round trip."""
        calls = {shard: self._search(shard) for shard in self.searchers}
        return await self._gather(calls, self.deadline, _has_no_readings)

    async def retrieve_all(self) -> ScatterResult[Retrieved]:
        """Makes every shard retrieve, within the retrieval's share of the remaining time.

        All shards rank by late interaction, or none does.
        """
        gathered = await self._send_retrievals()
        ranked = {own.late_interaction for own in gathered.results.values()}
        if self.encoded.tokens is not None and ranked == {True, False}:
            # the merge of a shard has just left out its token vectors
            again = await replace(self, encoded=self._encoded_without_tokens).retrieve_all()
            return replace(again, results=_with_earlier_timings(gathered.results, again.results))
        return gathered

    async def _send_retrievals(self) -> ScatterResult[Retrieved]:
        until = self._retrieval_deadline
        if self.joint is None:
            calls = {shard: self._retrieve(shard, until) for shard in self.searchers}
            return await self._gather(calls, until, _has_no_hits)
        # shards that may wait for a write in vain are called alone, with an earlier deadline
        alone, required = self.unknown_writes, self.required_writes
        with self.joint.plan_retrieval(
            self.encoded, self.depth, until, required, alone
        ) as retrieval:
            return await self._gather(
                {shard: self._retrieve(shard, until) for shard in retrieval.alone},
                until,
                _has_no_hits,
                joint={
                    shards: self.recorder.recording_joint_call(shards, send)
                    for shards, send in retrieval.calls().items()
                },
            )

    def retrieve_from(
        self, shard: int, *, late_interaction: bool
    ) -> Coroutine[Any, Any, Retrieved]:
        """Makes one shard retrieve, with the deadline of `retrieve_all`.

        `late_interaction`: whether the shard may rank by late interaction, as the others did.
        """
        encoded = self.encoded if late_interaction else self._encoded_without_tokens
        return self._retrieve(shard, self._retrieval_deadline, encoded)

    def read(self, shard: int, hits: Sequence[Hit]) -> Coroutine[Any, Any, Read]:
        """Makes one shard read passages of hits that it returned."""
        searcher = self.searchers[shard]
        return self.recorder.call(
            shard,
            CallKind.READ,
            lambda: searcher.read(self._encoded_without_tokens, hits, self.deadline),
        )

    async def await_reads(
        self, reads: Mapping[int, Coroutine[Any, Any, Read]], failed_before: int
    ) -> ScatterResult[Read]:
        """Awaits the reads of some shards. `failed_before`: number of shards that failed before."""
        return await self._gather(reads, self.deadline, _has_no_readings, failed_before)

    async def _gather(
        self,
        calls: Mapping[int, Coroutine[Any, Any, Result]],
        until: Deadline,
        is_empty: Callable[[Result], bool],
        failed_before: int = 0,
        joint: Mapping[Shards, SendJoint[Result]] = NO_CALLS,
    ) -> ScatterResult[Result]:
        """Awaits a result of each shard, by the question's wait policy; see `scatter`.

        The minimum coverage must be reached twice: among the shards that this step calls, and among
        all shards of the index, where the `failed_before` shards count as failed. Shards are given
        up only after the first result that is not empty, or at the deadline.

        Raises:
            WinnowError: a shard failed, and the question forbids partial results.

        """
        called = len(calls) + sum(map(len, joint))
        policy = WaitPolicy()
        if self.allows_partial:
            shards = len(self.searchers)
            policy = policy_of_step(self.question.patience, shards, called, failed_before)
        timeout = AdaptiveTimeout(policy, called, until)
        partial, write = self.allows_partial, self._awaited_write
        return await scatter(calls, timeout, partial, is_empty, write, joint=joint)

    @property
    def _encoded_without_tokens(self) -> EncodedQuestion:
        """The question without token vectors, which only retrievals use."""
        return self.encoded if self.encoded.tokens is None else replace(self.encoded, tokens=None)

    def _search(self, shard: int) -> Coroutine[Any, Any, Read]:
        searcher = self.searchers[shard]
        depth, until = self._depth_of(shard), self._deadline_of(shard, self.deadline)
        return self.recorder.call(
            shard, CallKind.SEARCH, lambda: searcher.search(self.encoded, depth, until)
        )

    def _retrieve(
        self, shard: int, deadline: Deadline, encoded: EncodedQuestion | None = None
    ) -> Coroutine[Any, Any, Retrieved]:
        searcher, depth = self.searchers[shard], self._depth_of(shard)
        asked = encoded or self.encoded
        until = self._deadline_of(shard, deadline)
        return self.recorder.call(
            shard, CallKind.RETRIEVE, lambda: searcher.retrieve(asked, depth, until)
        )

    def _depth_of(self, shard: int) -> RetrievalDepth:
        return replace(self.depth, after=self.required_writes.get(shard, 0))

    def _deadline_of(self, shard: int, deadline: Deadline) -> Deadline:
        """Returns `deadline`, or an earlier deadline for a shard that may wait for a write in vain.

        Callers may name any write, and a waiting call occupies the shard.
        """
        return limited_wait(deadline) if shard in self.unknown_writes else deadline

    def _awaited_write(self, shard: int) -> str:
        """Describes the write that a late shard waited for; empty if there was none."""
        required, known = self.required_writes.get(shard, 0), self.last_known_write(shard)
        return (
            f"waited for write {required}, but the shard has only write {known}"
            if required > known
            else ""
        )

    @property
    def _retrieval_deadline(self) -> Deadline:
        return self.deadline.earlier(self.deadline.left() * (1 - self.limits.retrieve_share))


def limited_wait(deadline: Deadline) -> Deadline:
    """Returns the deadline for a shard that waits for a write which may not exist."""
    return deadline.earlier(max(deadline.left() - _MAX_WAIT_FOR_UNKNOWN_WRITE, 0.0))


def _has_no_hits(retrieved: Retrieved) -> bool:
    return not retrieved.hits


def _has_no_readings(read: Read) -> bool:
    return not read.readings


def _with_earlier_timings(
    earlier: Mapping[int, Retrieved], results: Mapping[int, Retrieved]
) -> dict[int, Retrieved]:
    """Adds the timings of an earlier retrieval, which also tell why there was a second one."""
    return {
        shard: replace(own, timings=earlier[shard].timings + own.timings)
        if shard in earlier
        else own
        for shard, own in results.items()
    }
