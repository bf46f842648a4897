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
