"""Searches by read scope: reads the best passages of the whole index, or of each shard."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial

from winnow.domain.answered import Timings
from winnow.domain.passage import Hit
from winnow.domain.question import ReadScope
from winnow.domain.reading import Reading
from winnow.domain.stopping import StoppingRule, wave_ends
from winnow.stateless.answer.calls import ShardCalls
from winnow.stateless.answer.choose import Ranked, best_overall, by_shard
from winnow.stateless.answer.read_schedule import ReadSchedule
from winnow.stateless.answer.search_result import SearchResult
from winnow.stateless.answer.stale_hits import StaleHitRetry, hits_of_same_versions
from winnow.stateless.policy.reading import SpeculationLimit
from winnow.telemetry.tracing.span import span

RuleFor = Callable[[bool], StoppingRule | None]
"""Returns the rule of early stopping, with or without late interaction; None reads all passages."""


async def search(calls: ShardCalls, rule_for: RuleFor, timings: Timings) -> SearchResult:
    """Retrieves and reads by the question's scope; records the time of each step in `timings`.

    In the global scope a rule may stop reading before all passages are read. Which readings count
    depends on the question alone, so the load of the shards changes no answer.

    Raises:
        WinnowError: a shard failed, and the question forbids partial results.

    """
    result = SearchResult(allows_partial=calls.allows_partial, timings=timings.shards)
    if calls.question.read_scope is ReadScope.PER_SHARD:
        await _search_per_shard(calls, result, timings)
        result.rule = rule_for(calls.uses_late_interaction)
    else:
        await _search_globally(calls, result, rule_for, timings)
    return result


async def _search_per_shard(calls: ShardCalls, result: SearchResult, timings: Timings) -> None:
    """Makes every shard retrieve and read its own best passages, in one round trip."""
    timings.read_start = calls.recorder.elapsed()
    with span("search"):
        gathered = await calls.search_all()
    for shard, read in gathered.results.items():
        result.record_write(shard, read)
    result.add_reads(gathered)
    result.lost_late_interaction = calls.uses_late_interaction and not all(
        reading.late_interaction for own in result.readings.values() for reading in own
    )
    timings.read = calls.recorder.elapsed() - timings.read_start


async def _search_globally(
    calls: ShardCalls, result: SearchResult, rule_for: RuleFor, timings: Timings
) -> None:
    """Makes every shard retrieve. Then the shards that hold the best passages read them."""
    timings.retrieve_start = calls.recorder.elapsed()
    with span("retrieve"):
        gathered = await calls.retrieve_all()
    result.add_retrievals(gathered)
    retrieved = gathered.results
    late = calls.uses_late_interaction and all(own.late_interaction for own in retrieved.values())
    result.lost_late_interaction = calls.uses_late_interaction and not late
    result.rule = rule = rule_for(late)
    with span("choose"):
        ranked = best_overall(retrieved, calls.depth)
    timings.read_start = calls.recorder.elapsed()
    timings.retrieve = timings.read_start - timings.retrieve_start
    ends = wave_ends(len(ranked), rule.first_look) if rule else [len(ranked)]
    idle = {shard: own.idle_readers for shard, own in retrieved.items()}
    limit = SpeculationLimit(idle, calls.limits.read_ahead)
    may_stop = partial(_may_stop, rule, result, ranked)

    async def choose_again(shard: int) -> Sequence[Hit]:
        again = await calls.retrieve_from(shard, late_interaction=late)
        result.add_retrieval(shard, again)
        if again.late_interaction != late:  # the distances of other passages are not comparable
            return hits_of_same_versions(by_shard(ranked)[shard], again.hits)
        return by_shard(best_overall({**retrieved, shard: again}, calls.depth)).get(shard, ())

    with (
        span("read", {"winnow.passages": len(ranked)}),
        StaleHitRetry(calls.read, choose_again, by_shard(ranked)) as shards,
        ReadSchedule(
            shards.read, ranked, limit, may_stop=may_stop, failed=result.failures
        ) as reads,
    ):
        for end in ends:
            done = await calls.await_reads(reads.start_needed(end), len(result.failures))
            result.add_reads(done)
            for shard in done.failures:
                result.add_readings(shard, reads.take_finished(shard))
            if may_stop(end):
                break
        result.unneeded_reads = reads.unneeded
    timings.read = calls.recorder.elapsed() - timings.read_start


def _may_stop(
    rule: StoppingRule | None,
    result: SearchResult,
    ranked: Ranked,
    end: int,
    more: Iterable[Reading] = (),
) -> bool:
    """Whether reading may stop before the passage at index `end` of `ranked`.

    `more` are readings that are not in `result` yet.
    """
    if rule is None or end == len(ranked):
        return False
    nearest, next_unread = ranked[0][1].hybrid_distance, ranked[end][1].hybrid_distance
    return rule.safe(result.best_score(more), nearest, next_unread)
