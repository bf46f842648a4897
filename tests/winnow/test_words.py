"""Whole words of a text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.text.words import whole_words


@pytest.mark.parametrize(
    ("text", "inside", "whole"),
    [
        ("in Frooming weather", "room", "Frooming"),
        ("it costs 2,700 dollars", "700", "2,700"),
        ("it costs 2,700 dollars", "2", "2,700"),
        ("it is 3.14159 long", "14159", "3.14159"),
        ("at the end. Then", "end", "end"),
        ("cafe\u0301 in Łódź", "cafe", "cafe\u0301"),
        ("a 👩\u200d🚀 flew", "👩", "👩\u200d🚀"),
        ("a 👩\u200d🚀 flew", "🚀", "👩\u200d🚀"),
        ("Dvořák wrote", "vořá", "Dvořák"),
        ("(Vienna)", "Vienna", "Vienna"),
        ("我住在北京市", "北京", "北京"),
        ("東京タワー", "タワ", "タワー"),
        ("x", "x", "x"),
    ],
)
def test_a_span_is_grown_to_whole_words(text: str, inside: str, whole: str) -> None:
    start = text.index(inside)
    first, last = whole_words(text, start, start + len(inside))
    assert text[first:last] == whole


@given(st.text(max_size=30), st.data())
def test_growing_never_shrinks_and_is_settled_at_once(text: str, data: st.DataObject) -> None:
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    first, last = whole_words(text, start, end)
    assert 0 <= first <= start <= end <= last <= len(text)
    assert whole_words(text, first, last) == (first, last)
