"""A shard that replaces its rows between retrieving and reading."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace

import pytest
from fake_shards import LIMITS, find, passages, question
from fakes import FakeSearcher, reading
from hypothesis import given
from hypothesis import strategies as st
from tenacious import happens, turn

from winnow.domain.answered import ShardTimings, Timings
from winnow.domain.coverage import ShardStatus
from winnow.domain.passage import Hit
from winnow.domain.question import PartialResults, ReadScope
from winnow.domain.stopping import StoppingRule
from winnow.errors import GenerationGoneError
from winnow.searcher import Read
from winnow.stateless.answer.stale_hits import StaleHitRetry, replacements

OLD = [reading("a", distance=0.1), reading("b", distance=0.2), reading("c", distance=0.9)]
NEW = [reading("c", distance=0.9), reading("b", distance=0.2), reading("d", distance=0.3)]
"""Without `a`, with another passage, and in other rows."""


def changing(*generations: str) -> FakeSearcher:
    """A shard that turns to each of these generations after a retrieval."""
    turns = [(name, NEW) for name in generations]
    return FakeSearcher(OLD, generation="old", next_generations=list(turns))


@pytest.mark.parametrize("partial", list(PartialResults))
async def test_passages_of_a_generation_that_is_gone_are_chosen_anew(
    partial: PartialResults,
) -> None:
    shard, timings = changing("new"), Timings()
    asked = question(ReadScope.GLOBAL, 2, partial_results=partial)
    found = await find([shard, FakeSearcher([reading("z", distance=0.8)])], asked, timings=timings)
    assert passages(found) == {"b", "d"}
    assert not found.failures
    assert timings.shards[0].retrieve == pytest.approx(0.002)


async def test_passages_that_are_not_among_the_best_of_all_any_more_are_not_read() -> None:
    shard = changing("new")
    other = FakeSearcher([reading("y", distance=0.25), reading("z", distance=0.8)])
    found = await find([shard, other], question(ReadScope.GLOBAL, 2))
    assert passages(found) == {"b"}, "and not d, which is further than y"


async def test_a_shard_that_replaces_its_rows_twice_has_failed() -> None:
    shard = changing("new", "newer")
    found = await find(
        [shard, FakeSearcher([reading("z", distance=0.15)])], question(ReadScope.GLOBAL, 3)
    )
    assert passages(found) == {"z"}
    assert found.failures[0].status is ShardStatus.FAILED
    assert found.failures[0].detail == "shard 0 serves newer"


@pytest.mark.parametrize("ahead", [0, 3])
async def test_whatever_is_read_ahead_a_shard_retrieves_again_once(ahead: int) -> None:
    shard = changing("new")
    shard.idle = ahead
    rule = StoppingRule(0.0, 0.0, bar=100.0)
    limits = replace(LIMITS, read_ahead=ahead)
    found = await find([shard], question(ReadScope.GLOBAL, 3), rule, limits=limits)
    assert passages(found) == {"b", "c", "d"}
    assert found.total_reads == len(shard.read_rows) == 3
    assert len(shard.depths) == 2


async def test_one_that_is_cancelled_leaves_the_new_choice_to_the_others() -> None:
    go_on = asyncio.Event()
    old, new = (
        Hit(row=0, passage_id="a", distance=0.1, hybrid_distance=0.1, generation="old"),
        Hit(row=7, passage_id="a", distance=0.1, hybrid_distance=0.1, generation="new"),
    )
    chosen = []

    async def read(_: int, hits: Sequence[Hit]) -> Read:
        if hits[0].generation == "old":
            raise GenerationGoneError("gone")
        return Read(tuple(reading(hit.passage_id) for hit in hits), ShardTimings())

    async def choose(shard: int) -> Sequence[Hit]:
        chosen.append(shard)
        await go_on.wait()
        return [new]

    with StaleHitRetry(read, choose, {0: [old]}) as generations:
        one = asyncio.create_task(generations.read(0, [old]))
        other = asyncio.create_task(generations.read(0, [old]))
        await happens(lambda: bool(chosen))
        one.cancel()
        await turn()
        go_on.set()
        assert [each.passage.id for each in (await other).readings] == ["a"]
    assert chosen == [0]
    assert one.cancelled()


names = st.lists(st.sampled_from("abcdefgh"), unique=True)


@given(names, names)
def test_no_passage_is_read_twice_and_no_more_than_before(old: list[str], new: list[str]) -> None:
    before = [
        Hit(row=row, passage_id=name, distance=0.0, hybrid_distance=0.0, generation="old")
        for row, name in enumerate(old)
    ]
    after = [
        Hit(row=row, passage_id=name, distance=0.0, hybrid_distance=0.0, generation="new")
        for row, name in enumerate(new)
    ]
    replaced = replacements(before, after)
    best = new[: len(old)]
    assert sorted(hit.passage_id for hit in replaced.values()) == sorted(best)
    assert all(replaced[name].passage_id == name for name in old if name in best)
    assert replaced.keys() <= set(old)
