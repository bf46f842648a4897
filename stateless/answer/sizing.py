"""Adds sentences to merged answers, and chooses the size of each answer. Pure."""

from dataclasses import replace

from winnow.domain.answer_size import choose_size
from winnow.domain.answered import Answer
from winnow.domain.calibration import AnswerCalibration
from winnow.domain.question import Question
from winnow.text.surroundings import list_around, sentence_around


def with_size(
    answer: Answer, question: Question, calibration: AnswerCalibration | None = None
) -> Answer:
    """Returns the answer with its sentence and with the size that the question requested.

    If the question asks for several things and the span is in a list, the list is the sentence.
    `calibration` estimates the probability that a sentence contains the right answer.
    """
    reading = answer.reading
    text, start, end = reading.passage.text, reading.start, reading.end
    whole_list = list_around(text, start, end) if question.asks_for_several else None
    surer = None if calibration is None else calibration.confidence_of_sentence(reading)
    return replace(
        answer,
        sentence=whole_list or sentence_around(text, start, end),
        sentence_confidence=surer,
        size=choose_size(
            question.answer_size, answer.confidence, surer, is_list=whole_list is not None
        ),
    )


def is_likely(answers: tuple[Answer, ...], min_confidence: float) -> bool:
    """Whether the confidence of the best answer, in the size that is shown, is high enough."""
    confidence = answers[0].shown_confidence if answers else None
    return confidence is not None and confidence >= min_confidence
