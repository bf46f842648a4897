"""Which reads of a question are in flight, and what becomes of them when it ends or fails."""

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Sequence

import pytest
from fakes import reading
from tenacious import happens, turn

from winnow.domain.answered import ShardTimings
from winnow.domain.passage import Hit
from winnow.domain.reading import Reading
from winnow.errors import OverloadedError
from winnow.searcher import Read
from winnow.stateless.answer.choose import Ranked
from winnow.stateless.answer.read_schedule import ReadSchedule
from winnow.stateless.policy.reading import SpeculationLimit


def ranked(passages: str, shards: Sequence[int] = ()) -> Ranked:
    """Passages named by letters, best first; all of shard 0 by default."""
    return [
        (
            shards[row] if shards else 0,
            Hit(row=row, passage_id=name, distance=row / 10, hybrid_distance=row / 10),
        )
        for row, name in enumerate(passages)
    ]


def limit(most: int, *idle: int) -> SpeculationLimit:
    """Shard n has `idle[n]` idle readers."""
    return SpeculationLimit(dict(enumerate(idle)), most)


class Shards:
    """Shards that read the passages in `ready` at once, and others when told to finish."""

    def __init__(self, ready: str = "") -> None:
        self._ready = defaultdict[str, asyncio.Event](asyncio.Event)
        self.finish(ready)
        self.calls: list[str] = []
        self.ended: list[str] = []
        self.replies: dict[str, list[Read | OverloadedError]] = {}
        """The first replies for a passage; then it is read."""

    async def send(self, _: int, hits: Sequence[Hit]) -> Read:
        names = [hit.passage_id for hit in hits]
        self.calls.append("".join(names))
        try:
            await turn()
            for name in names:
                await self._ready[name].wait()
        finally:
            self.ended.append("".join(names))
        if self.replies.get(names[0]):
            reply = self.replies[names[0]].pop(0)
            if isinstance(reply, Exception):
                raise reply
            return reply
        return Read(tuple(reading(name) for name in names), ShardTimings())

    def finish(self, passages: str) -> None:
        for name in passages:
            self._ready[name].set()

    @property
    def in_flight(self) -> str:
        """The calls that have begun and not ended."""
        return " ".join(call for call in self.calls if call not in self.ended)

    async def all_ended(self) -> None:
        await happens(lambda: sorted(self.calls) == sorted(self.ended))


def names(read: Read) -> list[str]:
    return [each.passage.id for each in read.readings]


async def settle() -> None:
    """Lets everything happen that waits for nothing."""
    for _ in range(20):
        await turn()


def not_read() -> Read:
    return Read((), ShardTimings(), unread=1)


async def test_the_next_passage_is_begun_whenever_a_read_ends() -> None:
    shards = Shards()
    with ReadSchedule(shards.send, ranked("abcdef"), limit(2, 2)) as reads:
        first = asyncio.create_task(reads.start_needed(2)[0])
        await settle()
        assert shards.in_flight == "a b"
        shards.finish("b")
        await settle()
        assert shards.in_flight == "a c"
        shards.finish("a")
        assert names(await first) == ["a", "b"]
        second = asyncio.create_task(reads.start_needed(4)[0])
        await settle()
        assert shards.in_flight == "c d"
        shards.finish("d")
        await settle()
        assert shards.in_flight == "c e"
        shards.finish("c")
        assert sorted(names(await second)) == ["c", "d"]
    await shards.all_ended()
    assert shards.calls == list("abcde")


async def test_nothing_is_begun_before_the_stopping_rule_is_checked() -> None:
    shards = Shards()
    with ReadSchedule(shards.send, ranked("abcdef"), limit(2, 2)) as reads:
        first = asyncio.create_task(reads.start_needed(1)[0])
        await settle()
        shards.finish("a")
        await first
        await settle()
        assert shards.in_flight == "b"
        assert shards.calls == ["a", "b"]


@pytest.mark.parametrize(("needed", "calls"), [(1, "ab"), (2, "abcd"), (3, "abcdef")])
async def test_no_more_passages_are_read_ahead_than_are_needed(needed: int, calls: str) -> None:
    shards = Shards("bcdefgh")
    with ReadSchedule(shards.send, ranked("abcdefgh"), limit(2, 2)) as reads:
        reading_first = asyncio.create_task(reads.start_needed(needed)[0])
        await settle()
        assert "".join(shards.calls) == calls
        assert reads.unneeded == len(calls) - needed
        reading_first.cancel()


async def test_nothing_is_read_ahead_once_the_stopping_rule_holds_whatever_else_is_read() -> None:
    asked = []

    def may_stop(end: int, readings: Iterable[Reading]) -> bool:
        asked.append((end, [each.passage.id for each in readings]))
        return any(each.passage.id == "b" for each in readings)

    shards = Shards()
    with ReadSchedule(shards.send, ranked("abcdef"), limit(2, 2), may_stop=may_stop) as reads:
        needed = asyncio.create_task(reads.start_needed(2)[0])
        await settle()
        shards.finish("b")
        await settle()
        assert shards.in_flight == "a"
        assert asked == [(2, ["b"])]
        shards.finish("a")
        assert names(await needed) == ["a", "b"]
    assert shards.calls == ["a", "b"]


async def test_needed_passages_of_a_shard_share_a_call_except_the_last_before_a_check() -> None:
    shards = Shards("abcdefgh")
    with ReadSchedule(shards.send, ranked("abcdefgh", [0, 1] * 4), limit(2, 2, 2)) as reads:
        for read in reads.start_needed(6).values():
            await read
        assert shards.calls[:4] == ["ac", "bd", "e", "f"]


@pytest.mark.parametrize("idle", [(), (0, 0), (1, 0)])
async def test_needed_passages_of_a_shard_share_a_call_where_no_reader_is_idle(
    idle: tuple[int, ...],
) -> None:
    shards = Shards("abcdefgh")
    with ReadSchedule(shards.send, ranked("abcdefgh", [0, 1] * 4), limit(2, *idle)) as reads:
        for read in reads.start_needed(6).values():
            await read
        assert shards.calls == ["ace", "bdf"]


async def test_all_passages_of_a_shard_share_a_call_where_reading_cannot_stop() -> None:
    shards = Shards("abcdef")
    with ReadSchedule(shards.send, ranked("abcdef", [0, 1] * 3), limit(2, 2, 2)) as reads:
        for read in reads.start_needed(6).values():
            await read
    assert shards.calls == ["ace", "bdf"]


@pytest.mark.parametrize("turns", range(4))
async def test_nothing_runs_on_however_early_the_question_is_cancelled(turns: int) -> None:
    shards = Shards("a")
    with ReadSchedule(shards.send, ranked("abcdef"), limit(2, 2)) as reads:
        await reads.start_needed(1)[0]
        needed = asyncio.create_task(reads.start_needed(2)[0])
        for _ in range(turns):
            await turn()
        needed.cancel()
        await asyncio.wait([needed])
    await settle()
    assert sorted(shards.calls) == sorted(shards.ended)


async def test_speculative_reads_end_with_the_question() -> None:
    shards = Shards("a")
    with ReadSchedule(shards.send, ranked("ab"), limit(2, 2)) as reads:
        await reads.start_needed(1)[0]
        await happens(lambda: shards.in_flight == "b")
    await shards.all_ended()


async def test_speculative_reads_of_a_shard_that_was_given_up_end_with_it() -> None:
    shards, failed = Shards(), set[int]()
    passages = ranked("abcd", [0, 1, 0, 1])
    with ReadSchedule(shards.send, passages, limit(4, 2, 2), failed=failed) as reads:
        needed = asyncio.create_task(reads.start_needed(1)[0])
        await settle()
        assert shards.in_flight == "a b c d"
        needed.cancel()
        failed.add(0)
        assert reads.take_finished(0) == []
        await settle()
        assert shards.in_flight == "b d"
        shards.finish("bd")
        ((shard, rest),) = reads.start_needed(4).items()
        assert (shard, names(await rest)) == (1, ["b", "d"])


async def test_no_speculative_read_of_a_failed_shard_is_begun() -> None:
    shards = Shards()
    passages = ranked("abcd", [0, 1, 0, 1])
    with ReadSchedule(shards.send, passages, limit(2, 2, 2), failed={1}) as reads:
        needed = asyncio.create_task(reads.start_needed(1)[0])
        await settle()
        assert shards.in_flight == "a c"
        needed.cancel()


async def test_a_passage_that_was_not_read_in_time_is_read_again_once_it_is_needed() -> None:
    shards = Shards("b")
    shards.replies["b"] = [not_read()]
    with ReadSchedule(shards.send, ranked("ab"), limit(2, 2)) as reads:
        needed = reads.start_needed(1)
        await happens(lambda: shards.ended == ["b"])
        assert reads.unneeded == 0
        shards.finish("a")
        await needed[0]
        read = await reads.start_needed(2)[0]
        assert reads.unneeded == 0
    assert names(read) == ["b"]
    assert read.unread == 0
    assert shards.calls == ["a", "b", "b"]


async def test_a_speculative_read_that_fails_once_it_is_needed_is_tried_again() -> None:
    shards = Shards("a")
    shards.replies["b"] = [OverloadedError("full")]
    with ReadSchedule(shards.send, ranked("ab"), limit(2, 2)) as reads:
        await reads.start_needed(1)[0]
        needed = asyncio.create_task(reads.start_needed(2)[0])
        await settle()
        shards.finish("b")
        assert names(await needed) == ["b"]
    assert shards.calls == ["a", "b", "b"]


async def test_a_passage_that_is_read_again_does_not_wait_for_others() -> None:
    shards = Shards("ab")
    shards.replies["b"] = [not_read()]
    with ReadSchedule(shards.send, ranked("abc"), limit(2, 2)) as reads:
        await reads.start_needed(1)[0]
        await happens(lambda: shards.ended == ["a", "b"])
        await settle()
        needed = asyncio.create_task(reads.start_needed(3)[0])
        await happens(lambda: shards.calls == ["a", "b", "bc"])
        shards.finish("c")
        assert names(await needed) == ["b", "c"]


async def test_unread_passages_of_all_calls_are_counted() -> None:
    shards = Shards("ab")
    shards.replies["a"] = [not_read()]
    shards.replies["b"] = [not_read()]
    with ReadSchedule(shards.send, ranked("abc"), limit(2, 2)) as reads:
        assert (await reads.start_needed(2)[0]).unread == 2
    assert shards.calls[:2] == ["a", "b"]


async def test_a_read_that_was_given_up_leaves_what_it_has_read() -> None:
    shards = Shards("a")
    with ReadSchedule(shards.send, ranked("abc"), limit(2, 2)) as reads:
        needed = asyncio.create_task(reads.start_needed(2)[0])
        await happens(lambda: shards.ended == ["a"])
        await settle()
        needed.cancel()
        await asyncio.wait([needed])
        assert [each.passage.id for each in reads.take_finished(0)] == ["a"]
        assert reads.take_finished(0) == []


async def test_a_needed_read_that_fails_ends_the_others_of_its_shard() -> None:
    shards = Shards("ab")
    shards.replies["b"] = [OverloadedError("full")]
    with ReadSchedule(shards.send, ranked("abcd"), limit(3, 3)) as reads:
        needed = asyncio.create_task(reads.start_needed(3)[0])
        with pytest.raises(OverloadedError, match="full"):
            await needed
        await happens(lambda: "c" in shards.ended)
        assert [each.passage.id for each in reads.take_finished(0)] == ["a"]
    await shards.all_ended()
