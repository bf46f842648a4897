"""One list of answers out of the readings of many shards. Pure."""

from collections.abc import Iterable, Mapping

from winnow.domain.answered import Answer
from winnow.domain.confidence import Confidence
from winnow.domain.reading import Reading, rank


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
