"""The two ways of reading over shards: the best of all, or the best of each.

Both end in a `Searched`: readings by shard, and the failures of shards.
"""

import math
import time
from collections.abc import Sequence
from dataclasses import dataclass

from stateless.choose import best_overall, by_shard
from stateless.cluster import Cluster
from stateless.policy.waiting import AdaptiveTimeout, WaitingSettings
from stateless.scatter import Failure, Gathered, scatter
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
from winnow.searcher import Read


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


@dataclass(frozen=True, slots=True)
class Searched:
    """What the shards found. A shard is in one of the two, in both if it failed after having read
    some passages, or in none if it had nothing worth reading.
    """

    readings: dict[int, tuple[Reading, ...]]
    failures: dict[int, Failure]


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

    Under the global scope `rule` may end reading before all passages are read.

    Raises:
        WinnowError: a shard failed, and the question forbids partial results.

    """
    if question.read_scope is ReadScope.PER_SHARD:
        return await _per_shard(cluster, question, encoded, deadline, limits, timings)
    return await _global(cluster, question, encoded, rule, deadline, limits, timings)


async def _per_shard(
    cluster: Cluster,
    question: Question,
    encoded: EncodedQuestion,
    deadline: Deadline,
    limits: Limits,
    timings: Timings,
) -> Searched:
    started = time.perf_counter()
    depth = _depth(question, limits)
    calls = {
        shard: searcher.search(encoded, depth, question.max_answer_tokens, deadline)
        for shard, searcher in cluster.searchers.items()
    }
    gathered = await scatter(calls, _waits(cluster, question, deadline), partial=_partial(question))
    timings.read = time.perf_counter() - started
    return _searched(gathered, timings)


async def _global(
    cluster: Cluster,
    question: Question,
    encoded: EncodedQuestion,
    rule: StoppingRule | None,
    deadline: Deadline,
    limits: Limits,
    timings: Timings,
) -> Searched:
    started = time.perf_counter()
    depth = _depth(question, limits)
    patience = deadline.earlier(deadline.left() * (1 - limits.retrieve_share))
    found = await scatter(
        {
            shard: searcher.retrieve(encoded, depth, patience)
            for shard, searcher in cluster.searchers.items()
        },
        _waits(cluster, question, patience),
        partial=_partial(question),
    )
    for shard, retrieved in found.results.items():
        timings.shards[shard] = retrieved.timings
    ranked = best_overall(found.results, depth)
    timings.retrieve = time.perf_counter() - started
    searched = Searched({}, dict(found.failures))
    most = len(ranked)
    start = 0
    for end in wave_ends(most, rule.first_look) if rule else [most]:
        wave = [(shard, hit) for shard, hit in ranked[start:end] if shard not in searched.failures]
        calls = {
            shard: cluster.searchers[shard].read(encoded, own, question.max_answer_tokens, deadline)
            for shard, own in by_shard(wave).items()
        }
        failed = len(searched.failures)
        read = await scatter(
            calls,
            _waits(cluster, question, deadline),
            # a shard without a passage in this wave has done its part
            answered=len(cluster.searchers) - failed - len(calls),
            failed=failed,
            partial=_partial(question),
        )
        _add(searched, read, timings)
        if rule and end < most and _safe(rule, searched, ranked, end):
            break
        start = end
    timings.read = time.perf_counter() - started - timings.retrieve
    return searched


def _depth(question: Question, limits: Limits) -> Depth:
    hybrid = question.retriever is Retriever.HYBRID
    return Depth(question.passages_to_read, limits.candidates if hybrid else 0)


def _waits(cluster: Cluster, question: Question, until: Deadline) -> AdaptiveTimeout:
    """How long the shards are waited for: all of them, if all are needed."""
    patience = question.patience if _partial(question) else Patience()
    settings = WaitingSettings(
        patience.min_coverage, patience.min_wait_factor, patience.max_wait_factor
    )
    return AdaptiveTimeout(settings, len(cluster.searchers), until)


def _partial(question: Question) -> bool:
    return question.partial_results is PartialResults.ALLOW


def _searched(read: Gathered[Read], timings: Timings) -> Searched:
    searched = Searched({}, {})
    _add(searched, read, timings)
    return searched


def _add(searched: Searched, read: Gathered[Read], timings: Timings) -> None:
    for shard, result in read.results.items():
        timings.shards[shard] = timings.shards.get(shard, ShardTimings()) + result.timings
        searched.readings[shard] = searched.readings.get(shard, ()) + result.readings
    for shard, failure in read.failures.items():
        searched.failures[shard] = failure


def _safe(
    rule: StoppingRule, searched: Searched, ranked: Sequence[tuple[int, Hit]], end: int
) -> bool:
    return rule.safe(_best(searched), ranked[0][1].fused, ranked[end][1].fused)


def _best(searched: Searched) -> float:
    scores = (reading.score for own in searched.readings.values() for reading in own)
    return max((score for score in scores if not math.isnan(score)), default=-math.inf)
