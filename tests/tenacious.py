"""Waiting for something that happens in another process, or in another task."""

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

from winnow.errors import UnavailableError

Result = TypeVar("Result")


def until(condition: Callable[[], bool], seconds: float) -> None:
    """Looks again and again until `condition` holds; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        pause.wait(0.05)


async def happens(condition: Callable[[], bool], seconds: float = 60.0) -> None:
    """The same without holding up other tasks."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        await turn()


class Change:
    """Wakes tests when what they watch has changed: fakes tell, nothing polls."""

    def __init__(self) -> None:
        self._next = asyncio.Event()

    def tell(self) -> None:
        """Something has changed."""
        told, self._next = self._next, asyncio.Event()
        told.set()

    async def when(self, condition: Callable[[], bool], seconds: float = 60.0) -> None:
        """Waits until `condition` holds after a change; fails after `seconds`."""
        async with asyncio.timeout(seconds):
            while not condition():
                await self._next.wait()


async def available(work: Callable[[], Awaitable[Result]], seconds: float = 10.0) -> Result:
    """Does `work` again while it is unavailable, as a front does; fails after `seconds`."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            return await work()
        except UnavailableError:
            assert time.monotonic() < deadline, "it was unavailable all the time"
            await turn()


async def turn() -> None:
    """Lets everything go on that the event loop has ready, once."""
    turned = asyncio.Event()
    asyncio.get_running_loop().call_soon(turned.set)
    await turned.wait()
