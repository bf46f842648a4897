"""Tests of the batches of training steps."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from models.training.order import question_batches

SOURCES = ["a"] * 40 + ["b"] * 20
LENGTHS = [17 * n % 101 for n in range(60)]


@given(st.integers(0, 1000), st.integers(1, 7))
def test_the_order_is_a_function_of_the_seed(seed: int, batch: int) -> None:
    def run() -> list[list[int]]:
        return question_batches(SOURCES, LENGTHS, {"a": 1.5, "b": 1}, batch, seed)

    assert run() == run()


def test_another_seed_gives_another_order() -> None:
    assert question_batches(SOURCES, LENGTHS, {"a": 1}, 4, 1) != question_batches(
        SOURCES, LENGTHS, {"a": 1}, 4, 2
    )


def test_every_source_has_its_number_of_passes() -> None:
    seen = Counter(
        n for group in question_batches(SOURCES, LENGTHS, {"a": 1.5, "b": 2}, 4, 1) for n in group
    )
    assert sum(seen[n] for n in range(40)) == 60
    assert all(seen[n] == 2 for n in range(40, 60))


def test_a_source_without_passes_is_left_out() -> None:
    seen = {n for group in question_batches(SOURCES, LENGTHS, {"b": 1}, 4, 1) for n in group}
    assert seen == set(range(40, 60))


@given(st.integers(0, 1000))
def test_every_step_is_full(seed: int) -> None:
    assert {
        len(group) for group in question_batches(SOURCES, LENGTHS, {"a": 1, "b": 1}, 7, seed)
    } == {7}
