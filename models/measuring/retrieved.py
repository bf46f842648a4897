"""Checks that weights can be fitted to the passages that were retrieved. Pure."""

from collections.abc import Sequence

from models.data import DataError
from models.measuring.calibrate import RankedPassage
from models.measuring.judging import JudgedQuestion
from models.mining.retrievers import ScoredPassage
from winnow.quoting import many


def check_retrieved(
    kind: str,
    questions: Sequence[JudgedQuestion],
    rows: Sequence[Sequence[RankedPassage | ScoredPassage]],
    count: int,
) -> None:
    """Checks the passages of each question about a kind of text, before they are read.

    Raises:
        DataError: a question has fewer than `count` passages, or no passage has the answer to its
            question.

    """
    fewest = min(map(len, rows), default=count)
    if fewest < count:
        raise DataError(
            f"{kind}: a question has {many(fewest, 'retrieved passage')}, and {count} are needed: "
            "add passages to the index"
        )
    if not any(
        question.accepts_passage(each.passage)
        for question, row in zip(questions, rows, strict=True)
        for each in row
    ):
        raise DataError(
            f"{kind}: no retrieved passage has an answer to any of "
            f"{many(len(questions), 'question')}: check the accepted answers"
        )
