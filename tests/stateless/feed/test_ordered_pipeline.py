"""Messages of a stream: several in hand, done in their order, and given up together."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from awaited import AwaitedList
from tenacious import LONG, turn

from winnow.errors import LeavingError
from winnow.stateless.feed.ordered_pipeline import AwaitTurn, ordered_pipeline


class Work:
    """Work whose two halves a test lets go on."""

    def __init__(self) -> None:
        self.begun = AwaitedList[int]()
        self.finished: list[int] = []
        self.told: list[int] = []
        self.cancelled: list[int] = []
        self.may_begin: dict[int, asyncio.Event] = {n: asyncio.Event() for n in range(9)}
        self.fails: int | None = None

    async def __call__(self, number: int, turn: AwaitTurn) -> int:
        self.begun.append(number)
        try:
            await self.may_begin[number].wait()
            if number == self.fails:
                raise ValueError(number)
            await turn()
        except asyncio.CancelledError:
            self.cancelled.append(number)
            raise
        self.finished.append(number)
        return number


class Messages:
    """A stream that counts what was read of it."""

    def __init__(self, count: int, fails: bool = False, stalls: bool = False) -> None:
        self.count, self.read, self.fails, self.stalls = count, 0, fails, stalls

    def __aiter__(self) -> AsyncIterator[int]:
        return self

    async def __anext__(self) -> int:
        await turn()
        if self.read == self.count:
            if self.stalls:
                await asyncio.Event().wait()
            if self.fails:
                raise OSError("gone")
            raise StopAsyncIteration
        self.read += 1
        return self.read - 1


async def run(work: Work, messages: Messages, most: int = 3) -> Any:
    return await ordered_pipeline(messages, work, work.told.append, most)


async def test_a_stream_without_messages_ends() -> None:
    await asyncio.wait_for(run(Work(), Messages(0)), LONG)


async def test_no_more_is_read_than_may_be_in_hand() -> None:
    work, messages = Work(), Messages(6)
    running = asyncio.create_task(run(work, messages))
    await work.begun.holds(3)
    assert messages.read == 3
    work.may_begin[0].set()
    await work.begun.holds(4)
    assert (messages.read, work.told) == (4, [0])
    for each in work.may_begin.values():
        each.set()
    await asyncio.wait_for(running, LONG)
    assert work.told == list(range(6))


async def test_a_later_message_is_never_finished_before_an_earlier_one() -> None:
    work = Work()
    running = asyncio.create_task(run(work, Messages(3)))
    await work.begun.holds(3)
    for number in (2, 1, 0):
        work.may_begin[number].set()
        await turn()
    await asyncio.wait_for(running, LONG)
    assert work.finished == work.told == [0, 1, 2]


@pytest.mark.parametrize("failing", [0, 1, 2])
async def test_an_error_of_one_message_cancels_the_others(failing: int) -> None:
    work = Work()
    work.fails = failing
    running = asyncio.create_task(run(work, Messages(3, stalls=True), most=4))
    await work.begun.holds(3)
    work.may_begin[failing].set()
    with pytest.raises(ValueError, match=str(failing)):
        await asyncio.wait_for(running, LONG)
    assert sorted(work.cancelled) == sorted({0, 1, 2} - {failing})
    assert not work.finished


async def test_a_stream_that_cannot_be_read_ends_all() -> None:
    work = Work()
    with pytest.raises(OSError, match="gone"):
        await asyncio.wait_for(run(work, Messages(2, fails=True)), LONG)
    assert sorted(work.cancelled) == [0, 1]


@pytest.mark.parametrize("count", [2, 6])
async def test_work_that_others_cancel_fails_the_stream(count: int) -> None:
    """A stream that ended normally would count its messages as stored."""
    threads: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    told, waiting = AwaitedList[int](), AwaitedList[int]()

    async def work(number: int, turn: AwaitTurn) -> int:
        if number:
            waiting.append(number)
            await threads
        await turn()
        return number

    running = asyncio.create_task(ordered_pipeline(Messages(count), work, told.append, 3))
    await told.holds(1)
    await waiting.holds(min(count - 1, 3))
    threads.cancel()
    with pytest.raises(LeavingError):
        await asyncio.wait_for(running, LONG)
    assert told == [0]


async def test_cancelling_ends_all_and_leaves_nothing_behind() -> None:
    work = Work()
    running = asyncio.create_task(run(work, Messages(2, stalls=True)))
    await work.begun.holds(2)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert sorted(work.cancelled) == [0, 1]
    assert asyncio.all_tasks() == {asyncio.current_task()}
