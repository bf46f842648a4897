"""Exact match and F1 of a reader that is given the right passage."""

from collections.abc import Sequence
from dataclasses import dataclass

from models.data.rows import Question
from models.measuring.reading import OfflineReader
from winnow.text.scores import exact_match, f1


@dataclass(frozen=True, slots=True)
class GoldFigures:
    """Percent over all questions."""

    questions: int
    em: float
    f1: float


def read_gold(reader: OfflineReader, questions: Sequence[Question], what: str) -> GoldFigures:
    """Reads the gold passage of every question that has one."""
    work = [(q, q.gold) for q in questions if q.gold is not None]
    readings = reader.read_all([(q.text, gold, 0.0) for q, gold in work], what)
    pairs = [(reading.text, q.answers) for reading, (q, _) in zip(readings, work, strict=True)]
    matches = [exact_match(said, answers) for said, answers in pairs]
    overlaps = [f1(said, answers) for said, answers in pairs]
    return GoldFigures(
        len(pairs),
        round(100 * sum(matches) / len(pairs), 2),
        round(100 * sum(overlaps) / len(pairs), 2),
    )
