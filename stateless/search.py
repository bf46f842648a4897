"""The two ways of reading over shards: the best of all, or the best of each.

Both end in a `Searched`: readings by shard, and the failures of shards that gave none.
"""

import time
from dataclasses import dataclass

from stateless.choose import nearest_overall
from stateless.cluster import Cluster
from stateless.scatter import Failure, Gathered, scatter
from winnow.deadline import Deadline
from winnow.domain.answered import ShardTimings, Timings
from winnow.domain.question import EncodedQuestion, Question, ReadScope
from winnow.domain.reading import Reading
from winnow.searcher import Read


@dataclass(frozen=True, slots=True)
class Searched:
    """What the shards found; a shard is in one of the two, or had nothing worth reading."""

    readings: dict[int, tuple[Reading, ...]]
    failures: dict[int, Failure]


async def search(
    cluster: Cluster,
    question: Question,
    encoded: EncodedQuestion,
    deadline: Deadline,
    retrieve_share: float,
    timings: Timings,
) -> Searched:
    """Retrieves and reads by the question's scope; writes what it took into `timings`.

    `retrieve_share` of the time left is the most that retrieval waits for a shard, so that a hung
    one leaves time to read the others.
    """
    if question.read_scope is ReadScope.PER_SHARD:
        return await _per_shard(cluster, question, encoded, deadline, timings)
    return await _global(cluster, question, encoded, deadline, retrieve_share, timings)


async def _per_shard(
    cluster: Cluster,
    question: Question,
    encoded: EncodedQuestion,
    deadline: Deadline,
    timings: Timings,
) -> Searched:
    started = time.perf_counter()
    calls = {
        shard: searcher.search(
            encoded, question.passages_to_read, question.max_answer_tokens, deadline
        )
        for shard, searcher in cluster.searchers.items()
    }
    gathered = await scatter(calls, deadline)
    timings.read = time.perf_counter() - started
    return _searched(gathered, {}, timings)


async def _global(
    cluster: Cluster,
    question: Question,
    encoded: EncodedQuestion,
    deadline: Deadline,
    retrieve_share: float,
    timings: Timings,
) -> Searched:
    started = time.perf_counter()
    patience = deadline.earlier(deadline.left() * (1 - retrieve_share))
    found = await scatter(
        {
            shard: searcher.retrieve(encoded, question.passages_to_read, patience)
            for shard, searcher in cluster.searchers.items()
        },
        patience,
    )
    for shard, retrieved in found.results.items():
        timings.shards[shard] = retrieved.timings
    hits = {shard: retrieved.hits for shard, retrieved in found.results.items()}
    chosen = nearest_overall(hits, question.passages_to_read)
    timings.retrieve = time.perf_counter() - started
    read = await scatter(
        {
            shard: cluster.searchers[shard].read(encoded, own, question.max_answer_tokens, deadline)
            for shard, own in chosen.items()
        },
        deadline,
    )
    timings.read = time.perf_counter() - started - timings.retrieve
    return _searched(read, found.failures, timings)


def _searched(read: Gathered[Read], before: dict[int, Failure], timings: Timings) -> Searched:
    for shard, result in read.results.items():
        timings.shards[shard] = timings.shards.get(shard, ShardTimings()) + result.timings
    readings = {shard: result.readings for shard, result in read.results.items()}
    return Searched(readings, {**before, **read.failures})
