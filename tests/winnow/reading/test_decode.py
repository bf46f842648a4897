"""Spans out of logits."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from winnow.reading.decode import best_span

logits = st.integers(1, 40).flatmap(
    lambda n: st.tuples(
        *[arrays(np.float32, n, elements=st.floats(-20, 20, width=32)) for _ in range(2)]
    )
)


@given(logits, st.integers(1, 12))
def test_the_best_allowed_span_is_found(pair: tuple[np.ndarray, np.ndarray], most: int) -> None:
    start, end = pair
    found = best_span(start, end, most)
    assert found is not None
    assert 0 <= found.last - found.first < most
    allowed = [
        (start[i] + end[j], -i, -j)
        for i in range(len(start))
        for j in range(i, min(i + most, len(start)))
    ]
    assert (found.score, -found.first, -found.last) == max(allowed)


def test_without_tokens_there_is_no_span() -> None:
    assert best_span(np.zeros(0, np.float32), np.zeros(0, np.float32), 10) is None


def test_logits_that_are_not_numbers_are_never_chosen() -> None:
    start = np.array([np.nan, 1.0, 9.0], np.float32)
    end = np.array([1.0, 2.0, np.nan], np.float32)
    found = best_span(start, end, 2)
    assert found is not None
    assert (found.first, found.last) == (1, 1)
    assert best_span(np.full(3, np.nan, np.float32), end, 2) is None
