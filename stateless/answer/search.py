"""The two ways of reading over shards: the best passages of all, or the best of each.

Both give a `Searched`: readings by shard, and the failures of shards.
"""

from collections.abc import Sequence

from winnow.domain.answered import Timings
from winnow.domain.passage import Hit
from winnow.domain.question import ReadScope
from winnow.domain.stopping import StoppingRule, wave_ends
from winnow.stateless.answer.calls import Calls
from winnow.stateless.answer.choose import Ranked, best_overall, by_shard
from winnow.stateless.answer.findings import Findings, Searched
from winnow.stateless.answer.speculative_reads import SpeculativeReads
from winnow.stateless.answer.stale_hits import StaleHitRetry
from winnow.stateless.policy.reading import at_once
from winnow.telemetry.tracing.span import span


async def search(calls: Calls, rule: StoppingRule | None, timings: Timings) -> Searched:
    """Retrieves and reads by the question's scope; writes what it took into `timings`.

    Under the global scope `rule` may end reading before all passages are read. Which readings
    count then depends on the question alone, not on how busy the shards are.

    Raises:
        WinnowError: a shard failed, and the question forbids partial results.

    """
    findings = Findings(calls.partial, timings.shards)
    if calls.question.read_scope is ReadScope.PER_SHARD:
        return await _per_shard(calls, findings, timings)
    return await _over_all(calls, findings, rule, timings)


async def _per_shard(calls: Calls, findings: Findings, timings: Timings) -> Searched:
    """Has every shard read its own best passages, in one round trip."""
    timings.read_start = calls.recording.now()
    with span("search"):
        gathered = await calls.search()
    for shard, read in gathered.results.items():
        findings.knew(shard, read)
    findings.add(gathered)
    timings.read = calls.recording.now() - timings.read_start
    return findings.searched()


async def _over_all(
    calls: Calls, findings: Findings, rule: StoppingRule | None, timings: Timings
) -> Searched:
    """Has the best passages of the whole cluster read, each where it lies."""
    timings.retrieve_start = calls.recording.now()
    with span("retrieve"):
        gathered = await calls.retrieve()
    findings.retrieved(gathered)
    found = gathered.results
    with span("choose"):
        ranked = best_overall(found, calls.depth)
    timings.read_start = calls.recording.now()
    timings.retrieve = timings.read_start - timings.retrieve_start
    looks = wave_ends(len(ranked), rule.first_look) if rule else [len(ranked)]
    first = min(looks, default=0)
    idle = {shard: own.idle for shard, own in found.items()}
    at_first = at_once([shard for shard, _ in ranked], idle, first, calls.limits.read_ahead)

    async def choose_again(shard: int) -> Sequence[Hit]:
        again = await calls.retrieve_from(shard)
        findings.spend(shard, again.timings)
        findings.knew(shard, again)
        return by_shard(best_overall({**found, shard: again}, calls.depth)).get(shard, ())

    with (
        span("read", {"winnow.passages": len(ranked)}),
        StaleHitRetry(calls.read, choose_again, by_shard(ranked)) as shards,
        SpeculativeReads(shards.read, ranked[first:at_first]) as ahead,
    ):
        read = 0
        for look in looks:
            await _read(calls, findings, ranked[read:look], ahead)
            read = look
            if rule and look < len(ranked) and _safe(rule, findings, ranked, look):
                break
        in_vain = ahead.in_vain
    timings.read = calls.recording.now() - timings.read_start
    return findings.searched(in_vain)


async def _read(calls: Calls, findings: Findings, wave: Ranked, ahead: SpeculativeReads) -> None:
    """Reads some passages, except those of shards that have failed."""
    wanted = {n: hits for n, hits in by_shard(wave).items() if n not in findings.failures}
    reads = {shard: ahead.read(shard, hits) for shard, hits in wanted.items()}
    gathered = await calls.read_all(reads, len(findings.failures))
    findings.add(gathered)
    for shard in gathered.failures:
        findings.keep(shard, ahead.in_hand(shard, wanted[shard]))


def _safe(rule: StoppingRule, findings: Findings, ranked: Ranked, look: int) -> bool:
    """Whether reading may stop before the passage at `look`."""
    nearest, unread = ranked[0][1].hybrid_distance, ranked[look][1].hybrid_distance
    return rule.safe(findings.best, nearest, unread)
