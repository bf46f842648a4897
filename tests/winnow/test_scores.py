"""Exact match and F1 as SQuAD's own script gives them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from winnow.text.scores import exact_match, f1, normalise


@pytest.mark.parametrize(
    ("said", "accepted", "exact", "overlap"),
    [
        ("The Beatles", ["Beatles"], True, 1.0),
        ("chris froome.", ["Chris Froome"], True, 1.0),
        ("in Paris", ["Paris"], False, 2 / 3),
        ("London", ["Paris", "London!"], True, 1.0),
        ("London", ["Paris"], False, 0.0),
        ("", ["Paris"], False, 0.0),
        ("the", ["a"], True, 1.0),
        ("anything", [], False, 0.0),
    ],
)
def test_known_cases(said: str, accepted: list[str], exact: bool, overlap: float) -> None:
    assert exact_match(said, accepted) is exact
    assert f1(said, accepted) == pytest.approx(overlap)


@given(st.text(max_size=30), st.lists(st.text(max_size=30), max_size=3))
def test_an_exact_match_has_full_overlap(said: str, accepted: list[str]) -> None:
    assert 0.0 <= f1(said, accepted) <= 1.0
    if exact_match(said, accepted):
        assert f1(said, accepted) == 1.0


@given(st.text(max_size=40))
def test_normalising_twice_changes_nothing(text: str) -> None:
    once = normalise(text)
    assert " ".join(once.split()) == once
