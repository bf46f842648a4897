"""Merges what many shards found into one list of answers, and says what was covered. Pure."""

from collections.abc import Iterable, Mapping

from winnow.domain.answered import Answer
from winnow.domain.confidence import Confidence
from winnow.domain.coverage import Coverage, ShardCoverage, ShardStatus
from winnow.domain.reading import Reading, rank
from winnow.domain.shard import ShardInfo
from winnow.policy.logs import same_log
from winnow.stateless.answer.failures import Failure, error_of
from winnow.stateless.answer.findings import Searched


def merge(
    readings: Mapping[int, Iterable[Reading]], most: int, confidence: Confidence | None = None
) -> tuple[Answer, ...]:
    """The best `most` answers, one per passage, best first.

    Readings without a span are no answers; `confidence` says how likely the others are right. The
    order is total (`winnow.domain.reading.rank`), so the result does not depend on which shard
    replied first.
    """
    answers = [
        Answer(reading, shard, None if confidence is None else confidence.of(reading))
        for shard, found in readings.items()
        for reading in found
        if reading.end > reading.start
    ]
    answers.sort(key=lambda answer: rank(answer.reading))
    return tuple(answers[:most])


def cover(infos: Mapping[int, ShardInfo], searched: Searched) -> Coverage:
    """What was searched, in passages that each shard held when it retrieved.

    A shard that did not say so counts with the passages it was last known to hold. A shard that
    failed after it had read some passages counts as failed: its readings are in the answer, and
    its reason says how many there are.

    Raises:
        DeadlineExceededError: every shard was too late, and nothing was read.
        OverloadedError: every shard that was waited for was overloaded or late; says when to try
            again.
        UnavailableError: every shard failed, for several reasons.

    """
    failures = searched.failures
    if failures and failures.keys() >= infos.keys() and not any(searched.readings.values()):
        raise error_of(failures, "no shard gave an answer")
    return Coverage.of(_part(info, failures.get(shard), searched) for shard, info in infos.items())


def _part(info: ShardInfo, failure: Failure | None, searched: Searched) -> ShardCoverage:
    shard = info.shard
    sequence = searched.sequences.get(shard)
    passages = searched.passages.get(shard, info.passages)
    if not same_log(searched.logs.get(shard, ""), info.log_id):
        sequence, passages = None, info.passages  # of the log from before the shard was restored
    if failure is None:
        return ShardCoverage(
            shard=shard, passages=passages, status=ShardStatus.SEARCHED, sequence=sequence
        )
    reason = failure.reason
    if read := len(searched.readings.get(shard, ())):
        reason = f"{reason}; {read} of its passages were read"
    return ShardCoverage(
        shard=shard,
        passages=passages,
        status=failure.status,
        reason=reason,
        sequence=sequence,
        detail=failure.detail,
    )
