"""What is let in, as a table."""

from dataclasses import replace
from typing import Any

import pytest

from winnow.domain.answer_size import AnswerSize
from winnow.domain.question import (
    AnswerRequest,
    PartialResults,
    Question,
    ReadScope,
    Retriever,
    WaitPolicy,
)
from winnow.domain.write import Position
from winnow.errors import InvalidRequestError
from winnow.stateless.answer.validation import QuestionDefaults, validate

DEFAULTS = QuestionDefaults(
    passages_to_read=10, answers=3, read_scope=ReadScope.GLOBAL, max_answer_tokens=12
)


def test_a_bare_question_gets_the_defaults() -> None:
    got = validate(AnswerRequest(question="Who?"), DEFAULTS)
    assert got == Question(
        text="Who?",
        passages_to_read=10,
        answers=3,
        read_scope=ReadScope.GLOBAL,
        retriever=Retriever.HYBRID,
        max_answer_tokens=12,
    )


def test_options_win_over_defaults() -> None:
    request = AnswerRequest(
        question="Who?",
        passages_to_read=20,
        answers=1,
        max_answer_tokens=5,
        read_scope=ReadScope.PER_SHARD,
        retriever=Retriever.DENSE,
        partial_results=PartialResults.FORBID,
        min_coverage=0.55,
        max_wait_factor=0.4,
    )
    got = validate(request, DEFAULTS)
    assert got == Question(
        text="Who?",
        passages_to_read=20,
        answers=1,
        read_scope=ReadScope.PER_SHARD,
        retriever=Retriever.DENSE,
        max_answer_tokens=5,
        max_loss=0.0,
        partial_results=PartialResults.FORBID,
        patience=WaitPolicy(0.55, 0.0, 0.4),
    )


def test_the_writes_that_it_must_know_of_stay_as_they_are() -> None:
    after = (Position(1, 7), Position(0, 0))
    assert validate(AnswerRequest(question="Who?", after=after), DEFAULTS).after == after


def test_two_writes_of_one_shard_are_refused() -> None:
    after = (Position(1, 7), Position(0, 2), Position(1, 8))
    with pytest.raises(InvalidRequestError, match="after: names shard 1 2 times"):
        validate(AnswerRequest(question="Who?", after=after), DEFAULTS)


def test_size_and_confidence_are_those_of_the_question_or_of_the_server() -> None:
    defaults = replace(DEFAULTS, answer_size=AnswerSize.SENTENCE, min_confidence=0.5)
    bare = validate(AnswerRequest(question="Who?"), defaults)
    assert (bare.answer_size, bare.min_confidence) == (AnswerSize.SENTENCE, 0.5)
    request = AnswerRequest(question="Who?", answer_size=AnswerSize.SPAN, min_confidence=0)
    got = validate(request, defaults)
    assert (got.answer_size, got.min_confidence) == (AnswerSize.SPAN, 0)


def test_a_question_for_several_things_is_recognised() -> None:
    assert validate(AnswerRequest(question="What are these?"), DEFAULTS).asks_for_several


def test_a_minimum_confidence_needs_a_bundle_that_has_one() -> None:
    defaults = replace(DEFAULTS, has_confidence=False)
    with pytest.raises(InvalidRequestError, match="min_confidence: needs a bundle with a calib"):
        validate(AnswerRequest(question="Who?", min_confidence=0.5), defaults)


STOPPING = replace(DEFAULTS, max_loss=0.3)


def test_a_given_loss_wins_over_the_default() -> None:
    assert validate(AnswerRequest(question="Who?"), STOPPING).max_loss == 0.3
    assert validate(AnswerRequest(question="Who?", max_loss=0.5), STOPPING).max_loss == 0.5
    assert validate(AnswerRequest(question="Who?", max_loss=0), STOPPING).max_loss == 0


READING_ALL: list[dict[str, object]] = [
    {"retriever": Retriever.DENSE},
    {"retriever": Retriever.SPARSE},
    {"read_scope": ReadScope.PER_SHARD},
    {"retriever": Retriever.DENSE, "read_scope": ReadScope.PER_SHARD},
]


@pytest.mark.parametrize("options", READING_ALL)
def test_a_default_loss_is_not_used_where_every_passage_is_read(options: dict[str, Any]) -> None:
    assert validate(AnswerRequest(question="Who?", **options), STOPPING).max_loss == 0
    assert validate(AnswerRequest(question="Who?", max_loss=0, **options), STOPPING).max_loss == 0


@pytest.mark.parametrize("options", READING_ALL)
@pytest.mark.parametrize("by_default", [False, True])
def test_a_loss_that_would_be_ignored_is_refused_and_told_what_to_do(
    options: dict[str, Any], by_default: bool
) -> None:
    if by_default:
        defaults, request = (
            replace(STOPPING, **options),
            AnswerRequest(question="Who?", max_loss=0.1),
        )
    else:
        defaults, request = STOPPING, AnswerRequest(question="Who?", max_loss=0.1, **options)
    with pytest.raises(InvalidRequestError, match=r"max_loss: 0\.1 has no effect .*: use .* leave"):
        validate(request, defaults)


@pytest.mark.parametrize(
    ("fields", "violated"),
    [
        ({"question": ""}, ["question"]),
        ({"question": " \t\n\u3000"}, ["question"]),
        ({"question": "x" * 1001}, ["question"]),
        ({"question": "x", "passages_to_read": 0}, ["passages_to_read"]),
        ({"question": "x", "passages_to_read": 101}, ["passages_to_read"]),
        ({"question": "x", "answers": 4_000_000_000}, ["answers"]),
        ({"question": "x", "max_answer_tokens": 65}, ["max_answer_tokens"]),
        ({"question": "x", "max_loss": -0.1}, ["max_loss"]),
        ({"question": "x", "max_loss": float("nan")}, ["max_loss"]),
        ({"question": "x", "min_confidence": 1.1}, ["min_confidence"]),
        ({"question": "x", "min_confidence": float("nan")}, ["min_confidence"]),
        ({"question": "x", "min_coverage": 1.1}, ["min_coverage"]),
        ({"question": "x", "min_wait_factor": -0.1}, ["min_wait_factor"]),
        ({"question": "x", "max_wait_factor": float("nan")}, ["max_wait_factor"]),
        (
            {"question": "x", "min_wait_factor": 0.5, "max_wait_factor": 0.4},
            ["min_wait_factor"],
        ),
        ({"question": "", "answers": 0, "max_loss": 101}, ["question", "answers", "max_loss"]),
    ],
)
def test_every_broken_rule_is_named(fields: dict[str, Any], violated: list[str]) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        validate(AnswerRequest(**fields), DEFAULTS)
    assert [violation.field for violation in caught.value.violations] == violated


@pytest.mark.parametrize("question", ["x" * 1000, "¿Dónde está? 🎻", "a\x00b"])
def test_unusual_questions_are_let_in(question: str) -> None:
    assert validate(AnswerRequest(question=question), DEFAULTS).text == question


WITH_HEADS = replace(DEFAULTS, serves_heads=True)


def test_heads_of_a_question_are_kept_in_their_order() -> None:
    assert validate(AnswerRequest(question="Who?", heads=("b", "a")), WITH_HEADS).heads == (
        "b",
        "a",
    )


@pytest.mark.parametrize(
    ("heads", "defaults", "said"),
    [
        (("intent",), DEFAULTS, "heads: cannot be applied: start the front with --heads STORE"),
        (("ok", "Bad"), WITH_HEADS, r"heads\[1\]: 'Bad' is not a head id"),
        (("a", "a"), WITH_HEADS, r"heads\[1\]: 'a' occurs twice"),
        (tuple(map(str, range(33))), WITH_HEADS, "heads: has 33 heads, at most 32 are allowed"),
    ],
)
def test_heads_that_cannot_be_applied_are_a_violation(
    heads: tuple[str, ...], defaults: QuestionDefaults, said: str
) -> None:
    with pytest.raises(InvalidRequestError, match=said):
        validate(AnswerRequest(question="Who?", heads=heads), defaults)


FIELDS = frozenset({"year", "lang", "author.name"})


def test_a_filter_is_settled_to_its_one_text() -> None:
    request = AnswerRequest(question="Who?", where="year>=2010 AND (lang='en')")
    assert validate(request, DEFAULTS).where == 'year >= 2010 and lang = "en"'
    assert validate(request, DEFAULTS, FIELDS).where == 'year >= 2010 and lang = "en"'
    assert validate(AnswerRequest(question="Who?"), DEFAULTS, frozenset()).where == ""


@pytest.mark.parametrize(
    ("where", "fields", "said"),
    [
        (" ", None, "filter: expected the name of a field"),
        ("year >", FIELDS, "filter: expected a value at character 7, found the end"),
        ("year > 1" + " " * 1_000, FIELDS, "filter: has 1008 characters, at most 1000"),
        (
            "lagn = 'en' and year > 1",
            FIELDS,
            "filter: there is no field 'lagn': known are lang, .*author.name",
        ),
        (
            "exists a or exists b or exists c",
            FIELDS,
            "filter: there is no field 'a', nor 2 more that it names: known are ",
        ),
        ("year > 1", frozenset(), "filter: there is no field 'year': no passage has metadata"),
    ],
)
def test_what_is_no_filter_of_this_index_is_a_violation(
    where: str, fields: frozenset[str] | None, said: str
) -> None:
    with pytest.raises(InvalidRequestError, match=said) as caught:
        validate(AnswerRequest(question="Who?", where=where), DEFAULTS, fields)
    assert [violation.field for violation in caught.value.violations] == ["filter"]


def test_where_not_all_fields_are_known_any_field_may_be_one() -> None:
    assert (
        validate(AnswerRequest(question="Who?", where="yaer = 1"), DEFAULTS, None).where
        == "yaer = 1"
    )


def test_a_bad_filter_is_named_beside_what_else_is_wrong() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        validate(AnswerRequest(question="", where="x", answers=0), DEFAULTS)
    named = [violation.field for violation in caught.value.violations]
    assert named == ["question", "answers", "filter"]
