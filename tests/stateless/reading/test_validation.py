"""Requests to read texts that break a rule are refused, with the name of the field."""

from typing import Any

import pytest

from winnow.domain.text_reading import (
    HighlightTextRequest,
    ReadTextsRequest,
    RerankTextsRequest,
    TextToRead,
)
from winnow.errors import InvalidRequestError
from winnow.stateless.reading.validation import (
    ReadingDefaults,
    checked_highlight,
    checked_read,
    checked_rerank,
)

DEFAULTS = ReadingDefaults(max_answer_tokens=10, has_confidence=False)
ONE = (TextToRead("a"),)
LONG_TITLE = (TextToRead("a"), TextToRead("b", "t" * 1_001))


def fields(error: InvalidRequestError) -> list[str]:
    return [each.field for each in error.violations]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"question": " "}, "question"),
        ({"question": "q" * 1_001}, "question"),
        ({"texts": ()}, "texts"),
        ({"texts": ONE * 1_001}, "texts"),
        ({"texts": (TextToRead("a" * 999_999), TextToRead("bc"))}, "texts"),
        ({"texts": LONG_TITLE}, "passages[1].title"),
        ({"answers": 0}, "answers"),
        ({"answers": 1_001}, "answers"),
        ({"max_answer_tokens": 65}, "max_answer_tokens"),
        ({"min_confidence": 0.5}, "min_confidence"),
        ({"min_confidence": float("nan")}, "min_confidence"),
    ],
)
def test_a_request_to_read_names_the_field_that_breaks_a_rule(
    given: dict[str, Any], field: str
) -> None:
    request = ReadTextsRequest(**{"question": "who", "texts": ONE, **given})
    with pytest.raises(InvalidRequestError) as raised:
        checked_read(request, DEFAULTS)
    assert fields(raised.value) == [field]


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"text": TextToRead("")}, "text"),
        ({"text": TextToRead("a" * 1_000_001)}, "text"),
        ({"text": TextToRead("a", "t" * 1_001)}, "title"),
        ({"sentences": 0}, "sentences"),
        ({"sentences": 101}, "sentences"),
        ({"max_answer_tokens": 0}, "max_answer_tokens"),
    ],
)
def test_a_request_to_highlight_names_the_field_that_breaks_a_rule(
    given: dict[str, Any], field: str
) -> None:
    request = HighlightTextRequest(**{"question": "who", "text": TextToRead("a"), **given})
    with pytest.raises(InvalidRequestError) as raised:
        checked_highlight(request, DEFAULTS)
    assert fields(raised.value) == [field]


def test_all_results_are_ranked_unless_the_request_limits_them() -> None:
    assert checked_rerank(RerankTextsRequest(question="who", texts=ONE * 7)) == 7
    assert checked_rerank(RerankTextsRequest(question="who", texts=ONE * 7, top_n=2)) == 2
    with pytest.raises(InvalidRequestError, match="top_n"):
        checked_rerank(RerankTextsRequest(question="who", texts=ONE, top_n=0))


def test_the_longest_request_is_allowed() -> None:
    texts = (TextToRead("a" * 1_000),) * 1_000
    options = checked_read(ReadTextsRequest(question="who", texts=texts), DEFAULTS)
    assert (options.answers, options.max_answer_tokens, options.min_confidence) == (3, 10, None)
