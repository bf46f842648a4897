"""`winnow indexes compare` counts equal answers and exact matches of two indexes."""

from winnow.cli.asking import QuestionOutcome
from winnow.cli.indexes.compare import AnswerComparison, DifferentAnswer, compared, failures
from winnow.labelled_questions import LabelledQuestion
from winnow.v1 import answer_pb2

ASKED = [
    LabelledQuestion("Who?", ("Ann",)),
    LabelledQuestion("Where?", ("Rome", "Roma")),
    LabelledQuestion("When?", ()),
    LabelledQuestion("Why?", ("because",)),
]


def outcomes(*answers: str | None) -> list[QuestionOutcome]:
    """The outcomes of the questions; an empty answer stands for none, and None for a failure."""
    return [
        QuestionOutcome(
            question,
            None
            if text is None
            else answer_pb2.AnswerResponse(answers=[answer_pb2.Answer(text=text)] if text else []),
            0.1,
        )
        for question, text in zip(ASKED, answers, strict=True)
    ]


def test_answers_are_compared_question_by_question() -> None:
    """Questions that failed at an index, or have no accepted answers, count in no exact match."""
    first, second = outcomes("Ann", "Rome", "", "so"), outcomes("Ann", "Paris", "1999", None)
    assert compared(ASKED, first, second) == AnswerComparison(
        questions=4,
        failed=1,
        same=1,
        exact_match=(100.0, 50.0),
        different=(
            DifferentAnswer(question="Where?", first="Rome", second="Paris"),
            DifferentAnswer(question="When?", first="", second="1999"),
        ),
    )
    assert compared(ASKED[2:3], first[2:3], second[2:3]).exact_match is None


def test_the_reason_of_failed_questions_is_shown() -> None:
    failed = QuestionOutcome(ASKED[0], None, 0.1, "NOT_FOUND: there is no index 'new'")
    assert failures("new", [failed, *outcomes("Ann", "Rome", "", "so"), failed]) == [
        "new: 2 failed: NOT_FOUND: there is no index 'new'"
    ]
