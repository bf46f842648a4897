"""The two ways of reading over shards: the best of all, or the best of each.

Both end in a `Searched`: readings by shard, and the failures of shards.
"""

import math
import time
from collections.abc import Coroutine, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stateless.answer.ahead import ReadingAhead
from stateless.answer.choose import Ranked, best_overall, by_shard
from stateless.answer.scatter import Failure, Gathered, scatter
from stateless.cluster.cluster import Cluster
from stateless.policy.ahead import at_once
from stateless.policy.waiting import AdaptiveTimeout, WaitingSettings
from winnow.deadline import Deadline
from winnow.domain.answered import ShardTimings, Timings
from winnow.domain.passage import Hit
from winnow.domain.question import (
    Depth,
    EncodedQuestion,
    PartialResults,
    Patience,
    Question,
    ReadScope,
    Retriever,
)
from winnow.domain.reading import Reading
from winnow.domain.stopping import StoppingRule, wave_ends
from winnow.searcher import Read, Retrieved


@dataclass(frozen=True, slots=True)
class Limits:
    """How long shards are waited for, and how many passages are looked at."""

    merge_reserve: float
    """Seconds before a deadline at which shards are given up."""
    retrieve_share: float
    """Share of the time left that retrieval waits for a shard at most, so that a hung one leaves
    time to read the others.
    """
    candidates: int = 0
    """Nearest passages among which a hybrid retriever chooses."""
    read_ahead: int = 0
    """Passages read at once at most, unless more are needed, while readers are idle."""


@dataclass(frozen=True, slots=True)
class Searched:
    """What the shards found. A shard is in one of the two, in both if it failed after having read
    some passages, or in none if it had nothing worth reading.
    """

    readings: Mapping[int, tuple[Reading, ...]]
    failures: Mapping[int, Failure]
    read: int
    """Passages that were read, also those that turned out not to be needed."""


async def search(
    cluster: Cluster,
    question: Question,
    encoded: EncodedQuestion,
    rule: StoppingRule | None,
    deadline: Deadline,
    limits: Limits,
    timings: Timings,
) -> Searched:
    """Retrieves and reads by the question's scope; writes what it took into `timings`.

    Under the global scope `rule` may end reading before all passages are read. Which readings
    count then depends on the question alone, not on how busy the shards are.

    Raises:
        WinnowError: a shard failed, and the question forbids partial results.

    """
    one = _Search(cluster, question, encoded, deadline, limits, timings)
    if question.read_scope is ReadScope.PER_SHARD:
        return await one.per_shard()
    return await one.over_all(rule)


@dataclass(slots=True)
class _Search:
    """One question over a cluster."""

    cluster: Cluster
    question: Question
    encoded: EncodedQuestion
    deadline: Deadline
    limits: Limits
    timings: Timings
    readings: dict[int, list[Reading]] = field(default_factory=dict)
    failures: dict[int, Failure] = field(default_factory=dict)

    async def per_shard(self) -> Searched:
        """Every shard reads its own best, in one round trip."""
        started = time.perf_counter()
        calls = {
            shard: searcher.search(
                self.encoded, self._depth, self.question.max_answer_tokens, self.deadline
            )
            for shard, searcher in self.cluster.searchers.items()
        }
        waits = self._waits(len(calls), self.deadline)
        self._add(await scatter(calls, waits, self._partial))
        self.timings.read = time.perf_counter() - started
        return self._searched()

    async def over_all(self, rule: StoppingRule | None) -> Searched:
        """The best of the whole cluster are read, each where it lies."""
        started = time.perf_counter()
        found = await self._retrieve()
        ranked = best_overall(found, self._depth)
        idle = {shard: own.idle for shard, own in found.items()}
        self.timings.retrieve = time.perf_counter() - started
        looks = wave_ends(len(ranked), rule.first_look) if rule else [len(ranked)]
        shards, first = [shard for shard, _ in ranked], min(looks, default=0)
        at_first = at_once(shards, idle, first, self.limits.read_ahead)
        with ReadingAhead(self._send, ranked[first:at_first]) as ahead:
            read = 0
            for look in looks:
                await self._read(ranked[read:look], ahead)
                read = look
                if rule and look < len(ranked) and self._safe(rule, ranked, look):
                    break
            in_vain = ahead.in_vain
        self.timings.read = time.perf_counter() - started - self.timings.retrieve
        return self._searched(in_vain)

    async def _retrieve(self) -> dict[int, Retrieved]:
        share = 1 - self.limits.retrieve_share
        until = self.deadline.earlier(self.deadline.left() * share)
        calls = {
            shard: searcher.retrieve(self.encoded, self._depth, until)
            for shard, searcher in self.cluster.searchers.items()
        }
        found = await scatter(calls, self._waits(len(calls), until), self._partial)
        for shard, retrieved in found.results.items():
            self.timings.shards[shard] = retrieved.timings
        self.failures |= found.failures
        return found.results

    def _send(self, shard: int, hits: Sequence[Hit]) -> Coroutine[Any, Any, Read]:
        return self.cluster.searchers[shard].read(
            self.encoded, hits, self.question.max_answer_tokens, self.deadline
        )

    async def _read(self, wave: Ranked, ahead: ReadingAhead) -> None:
        calls = {
            shard: ahead.read(shard, own)
            for shard, own in by_shard(wave).items()
            if shard not in self.failures
        }
        # a shard without a passage here covers nothing: only those that read count towards enough
        waits = self._waits(len(calls), self.deadline)
        read = await scatter(calls, waits, self._partial)
        self._add(read)

    @property
    def _depth(self) -> Depth:
        hybrid = self.question.retriever is Retriever.HYBRID
        return Depth(self.question.passages_to_read, self.limits.candidates if hybrid else 0)

    @property
    def _partial(self) -> bool:
        return self.question.partial_results is PartialResults.ALLOW

    def _waits(self, called: int, until: Deadline) -> AdaptiveTimeout:
        """How long so many shards are waited for: all of them, if all are needed."""
        patience = self.question.patience if self._partial else Patience()
        settings = WaitingSettings(
            patience.min_coverage, patience.min_wait_factor, patience.max_wait_factor
        )
        return AdaptiveTimeout(settings, called, until)

    def _add(self, read: Gathered[Read]) -> None:
        shards = self.timings.shards
        for shard, result in read.results.items():
            shards[shard] = shards.get(shard, ShardTimings()) + result.timings
            self.readings.setdefault(shard, []).extend(result.readings)
        self.failures |= read.failures

    def _safe(self, rule: StoppingRule, ranked: Ranked, look: int) -> bool:
        scores = (reading.score for own in self.readings.values() for reading in own)
        best = max((score for score in scores if not math.isnan(score)), default=-math.inf)
        return rule.safe(best, ranked[0][1].hybrid_distance, ranked[look][1].hybrid_distance)

    def _searched(self, in_vain: int = 0) -> Searched:
        readings = {shard: tuple(own) for shard, own in self.readings.items()}
        return Searched(readings, self.failures, sum(map(len, readings.values())) + in_vain)
