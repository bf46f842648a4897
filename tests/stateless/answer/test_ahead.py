"""Speculative reads: what becomes of their tasks when a question ends, fails or is cancelled."""

import asyncio
from collections.abc import Sequence

import pytest
from fakes import reading
from tenacious import happens, turn

from winnow.domain.answered import ShardTimings
from winnow.domain.passage import Hit
from winnow.searcher import Read
from winnow.stateless.answer.speculative_reads import SpeculativeReads

A, B, C = (
    Hit(row=0, passage_id="a", distance=0.1, hybrid_distance=0.1),
    Hit(row=1, passage_id="b", distance=0.2, hybrid_distance=0.2),
    Hit(row=2, passage_id="c", distance=0.3, hybrid_distance=0.3),
)


class Shard:
    """Reads `a` at once and everything else when told to."""

    def __init__(self) -> None:
        self.begun: list[str] = []
        self.ended: list[str] = []
        self.go_on = asyncio.Event()
        self.replies: dict[str, list[Read]] = {}
        """What is said of a passage, in turn; at last that it was read."""

    async def send(self, _: int, hits: Sequence[Hit]) -> Read:
        names = [hit.passage_id for hit in hits]
        self.begun += names
        try:
            if names != ["a"]:
                await self.go_on.wait()
        finally:
            self.ended += names
        scripted = self.replies.get(names[0])
        if scripted:
            return scripted.pop(0)
        return Read(tuple(reading(name) for name in names), ShardTimings())

    async def all_ended(self) -> None:
        await happens(lambda: self.begun == self.ended)


@pytest.mark.parametrize("turns", range(4))
async def test_nothing_runs_on_however_early_the_question_is_cancelled(turns: int) -> None:
    shard = Shard()
    with SpeculativeReads(shard.send, [(0, B)]) as ahead:
        await ahead.read(0, [A])
        needed = asyncio.create_task(ahead.read(0, [B]))
        for _ in range(turns):
            await asyncio.sleep(0)
        needed.cancel()
        await asyncio.wait([needed])
    for _ in range(5):
        await turn()
    assert shard.begun == shard.ended == ["a", "b"]


async def test_what_is_read_ahead_ends_with_the_question() -> None:
    shard = Shard()
    with SpeculativeReads(shard.send, [(0, B)]) as ahead:
        await ahead.read(0, [A])
        await happens(lambda: "b" in shard.begun)
    await shard.all_ended()
    assert not shard.go_on.is_set()


async def test_a_read_that_is_given_up_before_it_began_ends_with_the_question() -> None:
    shard = Shard()
    with SpeculativeReads(shard.send, [(0, B)]) as ahead:
        await ahead.read(0, [A])
        await happens(lambda: "b" in shard.begun)
        assert ahead.take_finished(0, [B]) == []
    await shard.all_ended()
    assert not shard.go_on.is_set()


async def test_a_passage_that_could_not_be_read_ahead_in_time_is_read_again() -> None:
    shard = Shard()
    shard.go_on.set()
    shard.replies["b"] = [Read((), ShardTimings(), unread=1)]
    with SpeculativeReads(shard.send, [(0, B)]) as ahead:
        await ahead.read(0, [A])
        await shard.all_ended()
        read = await ahead.read(0, [B])
        assert ahead.unneeded == 0
    assert [each.passage.id for each in read.readings] == ["b"]
    assert read.unread == 0
    assert shard.begun == ["a", "b", "b"]


async def test_a_passage_that_could_not_be_read_ahead_does_not_wait_for_others() -> None:
    shard = Shard()
    shard.go_on.set()
    shard.replies["b"] = [Read((), ShardTimings(), unread=1)]
    with SpeculativeReads(shard.send, [(0, B)]) as ahead:
        await ahead.read(0, [A])
        await happens(lambda: shard.ended == ["a", "b"])
        await turn()
        shard.go_on.clear()
        needed = asyncio.create_task(ahead.read(0, [B, C]))
        await happens(lambda: shard.begun == ["a", "b", "b", "c"])
        shard.go_on.set()
        assert [each.passage.id for each in (await needed).readings] == ["b", "c"]


async def test_a_passage_that_was_not_read_ahead_in_time_is_not_counted_as_read() -> None:
    shard = Shard()
    shard.go_on.set()
    shard.replies["b"] = [Read((), ShardTimings(), unread=1)]
    with SpeculativeReads(shard.send, [(0, B)]) as ahead:
        await ahead.read(0, [A])
        await shard.all_ended()
        assert ahead.unneeded == 0


async def test_unread_passages_of_all_parts_are_counted() -> None:
    shard = Shard()
    shard.go_on.set()
    shard.replies["b"] = [Read((), ShardTimings(), unread=1) for _ in range(2)]
    shard.replies["a"] = [Read((), ShardTimings(), unread=1) for _ in range(2)]
    with SpeculativeReads(shard.send, [(0, B)]) as ahead:
        await ahead.read(0, [A])
        assert (await ahead.read(0, [A, B])).unread == 2


async def test_a_read_that_is_given_up_leaves_what_it_has_read() -> None:
    shard = Shard()
    with SpeculativeReads(shard.send, [(0, B)]) as ahead:
        await ahead.read(1, [Hit(row=7, passage_id="a", distance=0.0, hybrid_distance=0.0)])
        needed = asyncio.create_task(ahead.read(0, [A, B]))
        await happens(lambda: shard.ended == ["a", "a"])
        await turn()
        needed.cancel()
        await asyncio.wait([needed])
        assert [each.passage.id for each in ahead.take_finished(0, [A, B])] == ["a"]
        assert ahead.take_finished(0, [A, B]) == []
