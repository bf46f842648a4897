"""Spans of tokens to words of the text."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.bundle import Bundle
from winnow.domain.prediction import Entity, TokenSpan
from winnow.errors import UnavailableError
from winnow.stateless.heads.predictions import entities
from winnow.text.tokenizer import Tokenizer


@pytest.fixture(scope="module")
def tokenizer(bundle: Bundle) -> Tokenizer:
    return Tokenizer(bundle.tokenizer)


def found(tokenizer: Tokenizer, text: str, *spans: TokenSpan) -> list[tuple[str, str]]:
    offsets = tokenizer.tokenise(text).offsets
    return [(each.label, each.text) for each in entities(text, offsets, spans)]


def test_an_entity_is_whole_words_of_the_text(tokenizer: Tokenizer) -> None:
    text = "Zoe\u0308 Nowak lives in Łódź"
    spans = (TokenSpan("person", 0, 2, 0.9),)
    assert found(tokenizer, text, *spans)[0] == ("person", "Zoe\u0308 Nowak")


def test_entities_are_in_the_order_of_the_text(tokenizer: Tokenizer) -> None:
    spans = (TokenSpan("place", 3, 4, 0.5), TokenSpan("person", 0, 1, 0.4))
    text = "Ada lives in London"
    assert found(tokenizer, text, *spans) == [("person", "Ada"), ("place", "London")]


def test_of_two_spans_in_one_word_the_more_probable_stays(tokenizer: Tokenizer) -> None:
    text = "unbelievableness"
    assert len(tokenizer.tokenise(text)) > 1
    low, high = TokenSpan("a", 0, 1, 0.2), TokenSpan("b", 1, 2, 0.7)
    assert found(tokenizer, text, low, high) == [("b", text)]
    assert found(tokenizer, text, TokenSpan("a", 0, 1, 0.7), high) == [("a", text)]


def test_a_span_of_tokens_that_are_not_there_is_a_failure_of_its_head() -> None:
    with pytest.raises(UnavailableError, match="tokens 1 to 3, but the text has 2 tokens"):
        entities("a b", ((0, 1), (2, 3)), [TokenSpan("x", 1, 3, 1.0)])


@st.composite
def spans_of(draw: st.DrawFn, tokens: int) -> list[TokenSpan]:
    made, at = [], 0
    while at < tokens and draw(st.booleans()):
        first = draw(st.integers(at, tokens - 1))
        at = draw(st.integers(first + 1, tokens))
        made.append(TokenSpan(draw(st.sampled_from("xy")), first, at, draw(st.floats(0, 1))))
    return made


ALPHABET = st.one_of(
    st.sampled_from(
        [*"abc 1,.-", "é", "e\u0301", "👩\u200d🚀", "👍🏽", "北", "京", "タ", "ß", "İ"]
    ),
    st.characters(exclude_categories=["Cs"]),
)


@given(text=st.lists(ALPHABET, max_size=30).map("".join), data=st.data())
def test_an_entity_is_exactly_its_characters_and_none_is_over_another(
    tokenizer: Tokenizer, text: str, data: st.DataObject
) -> None:
    offsets = tokenizer.tokenise(text).offsets
    made = entities(text, offsets, data.draw(spans_of(len(offsets))))
    assert all(each.text == text[each.start : each.end] != "" for each in made)
    assert all(one.end <= other.start for one, other in pairwise(made))
    assert all(isinstance(each, Entity) for each in made)
