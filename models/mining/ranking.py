"""Training questions whose negatives are the best passages of the served retriever.

A question with a gold paragraph keeps it as its positive. Any other question gets a passage that
contains an accepted answer: the one in which a reader finds it, else the best one if it is near
enough. Pure but for the reader.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from models.data import Passage, Question, contains_answer, find_answer
from models.measuring.reading import OfflineReader
from models.mining.mine import TrainingQuestion
from models.mining.retrievers import FoundPassage
from winnow.domain.reading import Reading
from winnow.text.scores import exact_match

NEGATIVES = 16
"""Negatives kept for a question; training draws from them."""
_FARTHEST = 1.1
"""Squared distance beyond which an answer-bearing passage that no reader agrees with is taken to be
about something else: a cosine of 0.45.
"""


@dataclass(frozen=True, slots=True)
class RetrievedQuestion:
    """A question and the best passages for it, best first."""

    question: Question
    found: tuple[FoundPassage, ...]


def with_positives(
    asked: Sequence[RetrievedQuestion], reader: OfflineReader, judged: int = 8
) -> list[Question | None]:
    """Returns every question with the passage that answers it; None where there is none.

    The first `judged` answer-bearing passages of a question are read.
    """
    work = [
        (row, found)
        for row, each in enumerate(asked)
        if each.question.gold is None
        for found in _bearing(each)[:judged]
    ]
    read = [(asked[row].question.text, found.passage, found.distance) for row, found in work]
    best: dict[int, tuple[tuple[bool, float], Question | None]] = {}
    for (row, found), reading in zip(work, reader.read_all(read, "judge passages"), strict=True):
        question = asked[row].question
        right = exact_match(reading.text, question.answers)
        rank = (right, reading.score if right else -found.distance)
        near = right or found.distance <= _FARTHEST
        if near and (row not in best or rank > best[row][0]):
            best[row] = (rank, _answered(question, found.passage, reading if right else None))
    return [
        each.question if each.question.gold is not None else best.get(row, (None, None))[1]
        for row, each in enumerate(asked)
    ]


def training_questions(
    asked: Sequence[RetrievedQuestion], answered: Sequence[Question | None]
) -> tuple[list[Passage], list[TrainingQuestion]]:
    """Returns all passages, and every question that has an answer with its positive and its
    negatives.
    """
    numbers: dict[Passage, int] = {}
    made = []
    for each, question in zip(asked, answered, strict=True):
        if question is None or question.gold is None or question.answer_start is None:
            continue
        negatives = [
            found.passage
            for found in each.found
            if found.passage.text != question.gold.text
            and not contains_answer(found.passage, question.answers)
        ]
        positive, *others = (
            numbers.setdefault(passage, len(numbers))
            for passage in (question.gold, *negatives[:NEGATIVES])
        )
        made.append(
            TrainingQuestion(
                question=question.text,
                answer=question.answers[0],
                answer_start=question.answer_start,
                source=question.source,
                positive=positive,
                negatives=tuple(others),
                others=question.answers[1:],
            )
        )
    return list(numbers), made


def _bearing(asked: RetrievedQuestion) -> list[FoundPassage]:
    answers = asked.question.answers
    return [each for each in asked.found if find_answer(each.passage.text, answers) is not None]


def _answered(question: Question, passage: Passage, reading: Reading | None) -> Question | None:
    """Returns the question with its passage and the place of its answer: where a right reader says
    that it stands, or else where it stands first.
    """
    inside = None if reading is None else find_answer(reading.text, question.answers)
    found = inside or find_answer(passage.text, question.answers)
    if found is None:
        return None
    answer, start = found
    if reading is not None and inside is not None:
        start += reading.start
    known = (answer, *(each for each in question.answers if each != answer))
    return Question(
        text=question.text, answers=known, source=question.source, gold=passage, answer_start=start
    )
