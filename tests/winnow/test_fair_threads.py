"""Threads that work for several clients in turn."""

import asyncio
import threading
from collections.abc import Iterator

import pytest
from tenacious import happens

from winnow.errors import UnavailableError
from winnow.inference.fair_threads import FairThreads


@pytest.fixture
def threads() -> Iterator[FairThreads]:
    made = FairThreads(1, "test")
    yield made
    made.close()


class Busy:
    """Keeps one thread until it is told to let go."""

    def __init__(self) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()

    def __call__(self) -> None:
        self.begun.set()
        assert self.go_on.wait(60)


async def test_a_result_and_an_error_come_back(threads: FairThreads) -> None:
    assert await threads.run("a", lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        await threads.run("a", lambda: 1 // 0)
    assert await threads.run("a", lambda: 8) == 8


async def test_clients_take_turns_however_much_one_asks_for(threads: FairThreads) -> None:
    busy, order = Busy(), list[str]()
    first = asyncio.create_task(threads.run("greedy", busy))
    await asyncio.to_thread(busy.begun.wait, 60)
    rest = [asyncio.create_task(threads.run("greedy", lambda: order.append("greedy")))
            for _ in range(20)]  # fmt: skip
    rest.append(asyncio.create_task(threads.run("polite", lambda: order.append("polite"))))
    await happens(lambda: len(threads._queue) == 21)
    busy.go_on.set()
    await asyncio.gather(first, *rest)
    assert "polite" in order[:2]


async def test_what_is_cancelled_before_its_turn_is_never_done(threads: FairThreads) -> None:
    busy, done = Busy(), list[int]()
    first = asyncio.create_task(threads.run("a", busy))
    await asyncio.to_thread(busy.begun.wait, 60)
    late = asyncio.create_task(threads.run("a", lambda: done.append(1)))
    await happens(lambda: len(threads._queue) == 1)
    late.cancel()
    await asyncio.wait([late])
    assert len(threads._queue) == 0
    busy.go_on.set()
    await first
    assert await threads.run("a", lambda: list(done)) == []


async def test_closing_need_not_wait_for_a_thread_that_hangs() -> None:
    threads, busy = FairThreads(1, "test"), Busy()
    first = asyncio.create_task(threads.run("a", busy))
    await happens(busy.begun.is_set)
    threads.close(wait=False)
    with pytest.raises(asyncio.CancelledError):
        await first
    busy.go_on.set()


async def test_closing_cancels_what_waits() -> None:
    threads = FairThreads(1, "test")
    busy = Busy()
    first = asyncio.create_task(threads.run("a", busy))
    await asyncio.to_thread(busy.begun.wait, 60)
    waiting = asyncio.create_task(threads.run("a", lambda: 7))
    await happens(lambda: len(threads._queue) == 1)
    threads._closed = True  # so that the thread, once free, finds it closed already
    busy.go_on.set()
    await asyncio.to_thread(threads.close)
    await first
    with pytest.raises(asyncio.CancelledError):
        await waiting


async def test_work_for_closed_threads_fails_instead_of_waiting() -> None:
    """The threads of an index may be closed while a long stream still feeds it."""
    threads = FairThreads(1, "test")
    await asyncio.to_thread(threads.close)
    with pytest.raises(UnavailableError, match="threads for this work have ended"):
        await asyncio.wait_for(threads.run("a", lambda: 7), 60)


async def test_a_thread_that_hangs_is_replaced_and_ends_when_it_comes_back(
    threads: FairThreads,
) -> None:
    busy, names = Busy(), list[threading.Thread]()

    def hang() -> None:
        names.append(threading.current_thread())
        busy()

    hanging = asyncio.create_task(threads.run("a", hang))
    await asyncio.to_thread(busy.begun.wait, 60)
    waiting = asyncio.create_task(threads.run("a", threading.current_thread))
    threads.replace(names[0])
    threads.replace(names[0])  # once is enough
    assert await waiting is not names[0]
    busy.go_on.set()
    await hanging
    names[0].join(60)
    assert not names[0].is_alive()
    assert await threads.run("a", threading.current_thread) is await waiting
