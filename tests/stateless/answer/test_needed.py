"""How many passages an answer rests on: of the question and the passages alone."""

import asyncio
from dataclasses import replace

from fake_shards import LIMITS, find, passages, question
from fakes import FakeSearcher, reading
from hypothesis import given
from hypothesis import strategies as st

from winnow.domain.question import ReadScope
from winnow.domain.reading import Reading
from winnow.domain.stopping import StoppingRule
from winnow.stateless.answer.search_result import SearchResult

scores = st.lists(st.integers(-3, 9), min_size=1, max_size=20)
"""Of passages, nearest first."""


def searched(
    readings: list[Reading], places: list[int], idle: list[int], most: int, rule: StoppingRule
) -> SearchResult:
    """Searches passages that lie on shards `places`; shard n has `idle[n]` idle readers."""
    shards = [
        FakeSearcher(
            [each for each, own in zip(readings, places, strict=True) if own == shard], idle=free
        )
        for shard, free in enumerate(idle)
    ]
    asked = question(ReadScope.GLOBAL, 10)
    return asyncio.run(find(shards, asked, rule, limits=replace(LIMITS, read_ahead=most)))


@given(st.data(), scores, st.integers(-3, 12), st.integers(1, 3))
def test_what_is_needed_depends_neither_on_sharding_nor_on_idle_readers(
    data: st.DataObject, found: list[int], bar: int, first_look: int
) -> None:
    readings = [
        reading(f"p{place:02}", float(score), distance=place / 10)
        for place, score in enumerate(found)
    ]
    rule = StoppingRule(1.0, 1.0, float(bar), first_look)
    whole = searched(readings, [0] * len(readings), [0], 0, rule)
    shards = data.draw(st.integers(1, 5), label="shards")
    places = [data.draw(st.integers(0, shards - 1)) for _ in readings]
    idle = [data.draw(st.integers(0, 6)) for _ in range(shards)]
    cut = searched(readings, places, idle, data.draw(st.integers(0, 10), label="ahead"), rule)
    assert cut.needed_reads == whole.needed_reads == whole.total_reads
    assert cut.total_reads >= cut.needed_reads
    assert passages(cut) == passages(whole)
