"""Waits for events in other processes or tasks."""

import asyncio
import contextlib
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import TypeVar

from winnow.deadline import Deadline
from winnow.errors import UnavailableError

Result = TypeVar("Result")
LONG = 300.0
"""Seconds in which a wait, a call or a process of a test ends, however busy the machine is."""
LATER = Deadline.after(86_400)
"""A deadline after the last test. It is counted from the import, long before a slow test begins."""
_FAST_POLLS = 50
"""Number of polls without a pause, which suffice for conditions within this process."""


def until(condition: Callable[[], bool], seconds: float = LONG) -> None:
    """Polls `condition` until it holds; blocks this thread, and fails after `seconds`."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "the condition did not hold in time"
        pause.wait(0.05)


async def happens(condition: Callable[[], bool], seconds: float = LONG) -> None:
    """Polls `condition` until it holds, without blocking other tasks; fails after `seconds`."""
    deadline, polls = time.monotonic() + seconds, 0
    while not condition():
        assert time.monotonic() < deadline, "the condition did not hold in time"
        await _pause(polls := polls + 1)


class Change:
    """Wakes tests that wait for a condition; fakes call `tell` after each change."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def tell(self) -> None:
        """Wakes all waiting tests, so that they check their conditions."""
        told, self._next = self._next, asyncio.Event()
        told.set()

    async def when(self, condition: Callable[[], bool], seconds: float = LONG) -> None:
        """Waits until `condition` holds, and checks it after each `tell`; fails after `seconds`."""
        async with asyncio.timeout(seconds):
            while not condition():
                await self._next.wait()


def growing(seconds: float, longest: float = 64.0) -> Iterator[float]:
    """Yields times that double, for attempts that have no time to begin on a busy machine.

    The caller leaves the loop after an attempt that began. Fails after the longest one.
    """
    while seconds <= longest:
        yield seconds
        seconds *= 2
    raise AssertionError(f"it did not begin within {longest:g} s")


async def available(work: Callable[[], Awaitable[Result]], seconds: float = LONG) -> Result:
    """Retries `work` while it raises UnavailableError, as a front does; fails after `seconds`."""
    deadline, polls = time.monotonic() + seconds, 0
    while True:
        try:
            return await work()
        except UnavailableError:
            assert time.monotonic() < deadline, "it was unavailable all the time"
            await _pause(polls := polls + 1)


async def _pause(polls: int) -> None:
    """Waits before the next poll: a turn of the loop at first, then 10 ms."""
    if polls <= _FAST_POLLS:
        await turn()
    else:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.01):
                await asyncio.Event().wait()


async def turn() -> None:
    """Runs all tasks that are ready on the event loop once."""
    turned = asyncio.Event()
    asyncio.get_running_loop().call_soon(turned.set)
    await turned.wait()
