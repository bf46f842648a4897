"""Merges the readings of all shards into one list of answers, and counts coverage. Pure."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from winnow.domain.answered import Answer
from winnow.domain.coverage import Coverage, ShardCoverage, ShardStatus
from winnow.domain.reading import Reading, rank
from winnow.domain.shard import ShardInfo
from winnow.policy.logs import same_log
from winnow.stateless.answer.failures import Failure, error_of
from winnow.stateless.answer.search_result import SearchResult


def merge(
    readings: Mapping[int, Iterable[Reading]],
    max_answers: int,
    confidence_of: Callable[[Reading], float | None] = lambda _: None,
) -> tuple[Answer, ...]:
    """Returns the best answers, one per passage, best first.

    Readings without a span are not answers. `confidence_of` estimates the probability that a span
    is right. `winnow.domain.reading.rank` is a total order, so the result does not depend on which
    shard replied first.
    """
    answers = [
        Answer(reading, shard, confidence_of(reading))
        for shard, own in readings.items()
        for reading in own
        if reading.end > reading.start
    ]
    answers.sort(key=lambda answer: rank(answer.reading))
    return tuple(answers[:max_answers])


def coverage_of(infos: Mapping[int, ShardInfo], result: SearchResult, tenant: str = "") -> Coverage:
    """Returns the coverage of a search, in passages that each shard held when it retrieved.

    If a shard did not report its number of passages, the number in `infos` counts, or none if the
    question is of a `tenant`: the numbers in `infos` are those of all tenants. A shard that
    failed after reading some passages counts as failed. Its readings are still in the answer, and
    its reason tells how many passages were read.

    Raises:
        DeadlineExceededError: every shard was late, and nothing was read.
        OverloadedError: every shard was overloaded or late; the error says when to try again.
        UnavailableError: every shard failed, for other or several reasons.

    """
    failures = result.failures
    if failures and failures.keys() >= infos.keys() and not any(result.readings.values()):
        raise error_of(failures, "no shard gave an answer")
    return Coverage.of(
        _shard_coverage(replace(info, passages=0) if tenant else info, failures.get(shard), result)
        for shard, info in infos.items()
    )


def _shard_coverage(
    info: ShardInfo, failure: Failure | None, result: SearchResult
) -> ShardCoverage:
    shard = info.shard
    sequence = result.sequences.get(shard)
    passages = result.passages.get(shard, info.passages)
    if not same_log(result.log_ids.get(shard, ""), info.log_id):
        sequence, passages = None, info.passages  # the shard was restored since: another log
    if failure is None:
        return ShardCoverage(
            shard=shard, passages=passages, status=ShardStatus.SEARCHED, sequence=sequence
        )
    reason = failure.reason
    if reads := len(result.readings.get(shard, ())):
        reason = f"{reason}; {reads} of its passages were read"
    return ShardCoverage(
        shard=shard,
        passages=passages,
        status=failure.status,
        reason=reason,
        sequence=sequence,
        detail=failure.detail,
    )
