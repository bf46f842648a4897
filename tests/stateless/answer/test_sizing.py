"""The sizes of answers: which part of a passage is shown."""

from dataclasses import replace

import pytest
from fakes import reading

from winnow.domain.answer_size import AnswerSize, choose_size
from winnow.domain.answered import Answer
from winnow.domain.calibration import AnswerCalibration
from winnow.domain.confidence import Confidence
from winnow.domain.passage import Passage
from winnow.domain.question import Question, ReadScope, Retriever
from winnow.domain.threshold import AnswerThreshold
from winnow.stateless.answer.sizing import is_likely, with_size

TEXT = "There are areas. They are these:\n\nmain\ncontrib\n\nThe archive is signed."
QUESTION = Question(
    text="?",
    passages_to_read=10,
    answers=3,
    read_scope=ReadScope.GLOBAL,
    retriever=Retriever.HYBRID,
    max_answer_tokens=10,
)


def answer(span: str, confidence: float | None = None) -> Answer:
    start = TEXT.index(span)
    passage = Passage("a", "", TEXT)
    read = replace(reading("a"), passage=passage, start=start, end=start + len(span))
    return Answer(read, 0, confidence)


def shown(span: str, size: AnswerSize, *, asks_for_several: bool = False) -> str:
    question = replace(QUESTION, answer_size=size, asks_for_several=asks_for_several)
    return with_size(answer(span), question).shown_text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (AnswerSize.AUTO, "archive"),
        (AnswerSize.SPAN, "archive"),
        (AnswerSize.SENTENCE, "The archive is signed."),
        (AnswerSize.PASSAGE, TEXT),
    ],
)
def test_an_answer_has_the_requested_size(size: AnswerSize, text: str) -> None:
    assert shown("archive", size) == text


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (AnswerSize.AUTO, "They are these:\n\nmain\ncontrib"),
        (AnswerSize.SPAN, "main"),
        (AnswerSize.SENTENCE, "They are these:\n\nmain\ncontrib"),
    ],
)
def test_a_question_for_several_things_gets_the_list(size: AnswerSize, text: str) -> None:
    assert shown("main", size, asks_for_several=True) == text
    assert shown("main", AnswerSize.SENTENCE) == "main"
    assert shown("archive", AnswerSize.AUTO, asks_for_several=True) == "archive"


@pytest.mark.parametrize(
    ("confidence", "sentence_confidence", "size"),
    [
        (0.2, 0.8, AnswerSize.SENTENCE),
        (0.3, 0.4, AnswerSize.SPAN),
        (0.5, 0.9, AnswerSize.SPAN),
        (0.2, None, AnswerSize.SPAN),
        (None, 0.8, AnswerSize.SPAN),
    ],
)
def test_a_sentence_is_chosen_only_if_it_is_much_surer_than_an_unlikely_span(
    confidence: float | None, sentence_confidence: float | None, size: AnswerSize
) -> None:
    assert choose_size(AnswerSize.AUTO, confidence, sentence_confidence) is size


@pytest.mark.parametrize(
    ("size", "likely"),
    [(AnswerSize.SPAN, False), (AnswerSize.SENTENCE, True), (AnswerSize.PASSAGE, True)],
)
def test_the_confidence_of_the_shown_size_counts(size: AnswerSize, likely: bool) -> None:
    question = replace(QUESTION, answer_size=size)
    always = AnswerCalibration(
        threshold=AnswerThreshold(0.0), sentence_confidence=Confidence(0, 0, 0, 10)
    )
    found = with_size(answer("main", 0.4), question, always)
    assert found.sentence_confidence == pytest.approx(1, abs=0.001)
    assert is_likely((found,), 0.9) is likely
    assert is_likely((found,), 0.4)


def test_without_an_answer_or_a_confidence_nothing_is_likely() -> None:
    assert not is_likely((), 0.0)
    assert not is_likely((answer("main"),), 0.0)
