"""What is let in, as a table."""

import pytest

from stateless.answer.validation import Defaults, validate
from winnow.domain.question import PartialResults, Patience, Question, ReadScope, Retriever
from winnow.errors import InvalidRequestError
from winnow.v1 import answer_pb2

DEFAULTS = Defaults(10, 3, ReadScope.GLOBAL, 12)


def test_a_bare_question_gets_the_defaults() -> None:
    got = validate(answer_pb2.AnswerRequest(question="Who?"), DEFAULTS)
    assert got == Question("Who?", 10, 3, ReadScope.GLOBAL, Retriever.HYBRID, 12)


def test_options_win_over_defaults() -> None:
    request = answer_pb2.AnswerRequest(
        question="Who?",
        passages_to_read=20,
        answers=1,
        max_answer_tokens=5,
        max_loss=0.5,
        read_scope=answer_pb2.READ_SCOPE_PER_SHARD,
        retriever=answer_pb2.RETRIEVER_DENSE,
        partial_results=answer_pb2.PARTIAL_RESULTS_FORBID,
        min_coverage=0.55,
        max_wait_factor=0.4,
    )
    got = validate(request, DEFAULTS)
    assert got == Question(
        "Who?",
        20,
        1,
        ReadScope.PER_SHARD,
        Retriever.DENSE,
        5,
        0.5,
        PartialResults.FORBID,
        Patience(0.55, 0.0, 0.4),
    )


@pytest.mark.parametrize(
    ("fields", "violated"),
    [
        ({}, ["question"]),
        ({"question": " \t\n\u3000"}, ["question"]),
        ({"question": "x" * 1001}, ["question"]),
        ({"question": "x", "passages_to_read": 0}, ["passages_to_read"]),
        ({"question": "x", "passages_to_read": 101}, ["passages_to_read"]),
        ({"question": "x", "answers": 4_000_000_000}, ["answers"]),
        ({"question": "x", "max_answer_tokens": 65}, ["max_answer_tokens"]),
        ({"question": "x", "max_loss": -0.1}, ["max_loss"]),
        ({"question": "x", "max_loss": float("nan")}, ["max_loss"]),
        ({"question": "x", "partial_results": 9}, ["partial_results"]),
        ({"question": "x", "min_coverage": 1.1}, ["min_coverage"]),
        ({"question": "x", "min_wait_factor": -0.1}, ["min_wait_factor"]),
        ({"question": "x", "max_wait_factor": float("nan")}, ["max_wait_factor"]),
        (
            {"question": "x", "min_wait_factor": 0.5, "max_wait_factor": 0.4},
            ["min_wait_factor"],
        ),
        ({"question": "x", "read_scope": 9}, ["read_scope"]),
        ({"question": "x", "retriever": 9}, ["retriever"]),
        ({"answers": 0, "retriever": 9}, ["question", "answers", "retriever"]),
    ],
)
def test_every_broken_rule_is_named(fields: dict[str, object], violated: list[str]) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        validate(answer_pb2.AnswerRequest(**fields), DEFAULTS)  # type: ignore[arg-type]
    assert [violation.field for violation in caught.value.violations] == violated


@pytest.mark.parametrize("question", ["x" * 1000, "¿Dónde está? 🎻", "a\x00b"])
def test_unusual_questions_are_let_in(question: str) -> None:
    assert validate(answer_pb2.AnswerRequest(question=question), DEFAULTS).text == question
