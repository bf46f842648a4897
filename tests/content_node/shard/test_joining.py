"""Segments in memory stay few, and no passage is moved often."""

import math
import random
from collections.abc import Callable

import pytest

from winnow.content_node.shard.joining import MAX_JOINED_ROWS, tail_to_join


@pytest.mark.parametrize(
    ("batch", "most"),
    [(lambda _: 1, 17), (lambda chance: chance.randint(1, 256), 13), (lambda _: 256, 7)],
    ids=["one by one", "some at a time", "many at a time"],
)
def test_many_writes_are_a_dozen_segments(batch: Callable[[random.Random], int], most: int) -> None:
    chance = random.Random(1)
    rows: list[int] = []
    written = moved = 0
    while written < 16_000:
        rows.append(batch(chance))
        written += rows[-1]
        while count := tail_to_join(rows):
            joined = sum(rows[-count:])
            assert joined <= MAX_JOINED_ROWS
            rows[-count:] = [joined]
            moved += joined
        assert len(rows) <= most
    assert sum(rows) == written
    assert moved <= written * math.log(MAX_JOINED_ROWS, 3)


def test_a_single_segment_or_one_that_would_be_too_large_is_not_joined() -> None:
    assert tail_to_join([]) == tail_to_join([1]) == 0
    assert tail_to_join([MAX_JOINED_ROWS, 1]) == 0
    assert tail_to_join([1, 1, 1]) == 3
