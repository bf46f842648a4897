"""Ending a task for certain."""

import asyncio
from typing import Any

_AGAIN = 0.25
"""Seconds until a task that goes on is cancelled again."""


async def end(task: "asyncio.Task[Any]", again: float = _AGAIN) -> None:
    """Cancels a task until it is over, whatever it ends with.

    Once is not enough: clients that wait by `asyncio.wait_for` lose a cancellation up to Python
    3.11 if it comes together with what they wait for.
    """
    while not task.done():
        task.cancel()
        await asyncio.wait([task], timeout=again)
