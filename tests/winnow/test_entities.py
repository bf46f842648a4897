"""Labelled spans of a text to entities."""

import pytest

from winnow.domain.prediction import Entity
from winnow.text.entities import LabelledSpan, to_entities


def found(text: str, *spans: LabelledSpan) -> list[tuple[str, str]]:
    return [(each.label, each.text) for each in to_entities(text, spans)]


def test_a_span_is_grown_to_whole_words_with_its_label_and_score() -> None:
    assert to_entities("to Frooming now", [(4, 6, "place", 0.5)]) == (
        Entity(label="place", text="Frooming", start=3, end=11, score=0.5),
    )


@pytest.mark.parametrize(("second", "stays"), [(0.7, "b"), (0.2, "a"), (0.5, "a")])
def test_of_two_in_one_word_the_more_probable_stays_or_the_first(second: float, stays: str) -> None:
    spans = [(0, 2, "a", 0.5), (2, 4, "b", second)]
    assert found("word", *spans) == [(stays, "word")]


def test_entities_are_in_the_order_of_the_text() -> None:
    assert found("one two", (4, 5, "b", 0.1), (0, 1, "a", 0.2)) == [("a", "one"), ("b", "two")]


def test_a_span_of_no_characters_is_no_entity() -> None:
    assert found("a b", (1, 1, "x", 0.9)) == []
    assert found("", (0, 0, "x", 0.9)) == []
