"""Which requests for predictions are refused, and by which field."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.domain.prediction import PredictRequest
from winnow.errors import InvalidRequestError
from winnow.stateless.heads.validation import validate


def refused(request: PredictRequest) -> dict[str, str]:
    with pytest.raises(InvalidRequestError) as caught:
        validate(request)
    return {each.field: each.description for each in caught.value.violations}


def test_one_text_and_many_texts_are_both_texts() -> None:
    one = validate(PredictRequest("hello", head_ids=("a", "b")))
    assert (one.texts, one.fields, one.head_ids) == (("hello",), ("text",), ("a", "b"))
    many = validate(PredictRequest(texts=("x", "y"), head_ids=("a",), group="de"))
    assert (many.texts, many.fields, many.group) == (("x", "y"), ("texts[0]", "texts[1]"), "de")


def test_the_limits_themselves_are_allowed() -> None:
    ids = tuple(f"head-{n}" for n in range(32))
    assert validate(PredictRequest(texts=("\U0001f600" * 2_000,) * 16, head_ids=ids))


def test_every_violation_is_named_with_its_field() -> None:
    long = "x" * 2_001
    request = PredictRequest("a", ("", "b", long), ("Bad", "ok", "ok", "a..b"))
    assert refused(request) == {
        "texts": "is set, and so is text: leave one of the two empty",
        "texts[0]": "is empty: write something",
        "texts[2]": "has 2001 characters, at most 2000 are allowed",
        "head_ids[0]": "'Bad' is not a head id: 1 to 64 of a-z, 0-9, dot, dash, underscore",
        "head_ids[2]": "'ok' occurs twice: name each head once",
        "head_ids[3]": "'a..b' is not a head id: 1 to 64 of a-z, 0-9, dot, dash, underscore",
    }


def test_no_text_and_no_head_are_two_violations() -> None:
    assert refused(PredictRequest()) == {
        "text": "is empty: write something",
        "head_ids": "is empty: name 1 to 32 heads",
    }


def test_a_thousand_texts_or_heads_are_one_violation_each() -> None:
    request = PredictRequest(texts=("",) * 1_000, head_ids=("A",) * 1_000)
    assert refused(request) == {
        "texts": "has 1000 texts, at most 16 are allowed",
        "head_ids": "has 1000 heads, at most 32 are allowed",
    }


@given(
    texts=st.lists(st.text(max_size=30) | st.just("x" * 2_001), max_size=18),
    ids=st.lists(st.text(max_size=200), max_size=34),
)
def test_a_refusal_fits_into_the_headers_of_a_reply(texts: list[str], ids: list[str]) -> None:
    """It did not where every one of 48 fields was quoted in full: the call broke with INTERNAL."""
    fields = refused(PredictRequest(texts=("", *texts), head_ids=tuple(ids)))
    assert sum(len(field) + len(said) + 4 for field, said in fields.items()) < 2_000
    assert len(fields) <= 17
