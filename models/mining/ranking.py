"""Makes training questions whose negatives are the best passages of the served retriever.

A question with a gold passage keeps this passage as its positive. Any other question gets a
retrieved passage with the answer: a passage in which the reader finds the answer, or else the
nearest passage if it is near enough.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from models.data import Passage, Question, contains_answer, find_answer
from models.measuring.reading import OfflineReader
from models.mining.mine import TrainingQuestion, to_training_question, with_gold
from models.mining.retrievers import ScoredPassage
from winnow.domain.reading import Reading
from winnow.text.scores import exact_match

NEGATIVES = 16
"""Maximum number of negatives to keep per question. Training draws from them."""
_MAX_DISTANCE = 1.1
"""Beyond this squared distance (cosine 0.45), a passage with the answer is assumed off topic.

The limit does not apply if the reader finds the answer in the passage.
"""


@dataclass(frozen=True, slots=True)
class RetrievedQuestion:
    """A question and its retrieved passages, best first."""

    question: Question
    passages: tuple[ScoredPassage, ...]


def add_gold_passages(
    retrieved: Sequence[RetrievedQuestion], reader: OfflineReader, max_read: int = 8
) -> list[Question | None]:
    """Returns each question with a gold passage, or None in its place if no passage answers it.

    Reads the first `max_read` passages with the answer for each question.
    """
    candidates = [
        (row, scored)
        for row, each in enumerate(retrieved)
        if each.question.gold is None
        for scored in _passages_with_answer(each)[:max_read]
    ]
    inputs = [
        (retrieved[row].question.text, scored.passage, scored.distance)
        for row, scored in candidates
    ]
    readings = reader.read_all(inputs, "judge passages")
    best: dict[int, tuple[tuple[bool, float], Question | None]] = {}
    for (row, scored), reading in zip(candidates, readings, strict=True):
        question = retrieved[row].question
        is_right = exact_match(reading.answer, question.answers)
        rank = (is_right, reading.score if is_right else -scored.distance)
        is_near = is_right or scored.distance <= _MAX_DISTANCE
        if is_near and (row not in best or rank > best[row][0]):
            best[row] = (
                rank,
                _with_answer_position(question, scored.passage, reading if is_right else None),
            )
    return [
        each.question if each.question.gold is not None else best.get(row, (None, None))[1]
        for row, each in enumerate(retrieved)
    ]


def training_questions(
    retrieved: Sequence[RetrievedQuestion], answered: Sequence[Question | None]
) -> tuple[list[Passage], list[TrainingQuestion]]:
    """Returns all passages, and the answered questions with their positives and negatives."""
    indices: dict[Passage, int] = {}
    questions = []
    for each, question in zip(retrieved, answered, strict=True):
        if question is None or question.gold is None or question.answer_start is None:
            continue
        negatives = [
            scored.passage
            for scored in each.passages
            if scored.passage.text != question.gold.text
            and not contains_answer(scored.passage, question.answers)
        ]
        positive, *others = (
            indices.setdefault(passage, len(indices))
            for passage in (question.gold, *negatives[:NEGATIVES])
        )
        questions.append(to_training_question(question, positive, others))
    return list(indices), questions


def _passages_with_answer(retrieved: RetrievedQuestion) -> list[ScoredPassage]:
    answers = retrieved.question.answers
    return [
        each for each in retrieved.passages if find_answer(each.passage.text, answers) is not None
    ]


def _with_answer_position(
    question: Question, passage: Passage, reading: Reading | None
) -> Question | None:
    """Returns the question with this gold passage and the position of its answer.

    The answer is located in the span of a right reading, or else at its first occurrence in the
    passage.
    """
    in_span = None if reading is None else find_answer(reading.answer, question.answers)
    match = in_span or find_answer(passage.text, question.answers)
    if match is None:
        return None
    answer, start = match
    if reading is not None and in_span is not None:
        start += reading.start
    return with_gold(question, passage, answer, start)
