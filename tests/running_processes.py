"""Serving processes as tasks of a test, and a client of one of them."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from functools import partial
from typing import Any

from tenacious import LONG

from winnow.client import AsyncClient

Run = Callable[[], Coroutine[Any, Any, object]]


@contextlib.asynccontextmanager
async def running(
    runs: Sequence[Run], address: str, seconds: float = LONG
) -> AsyncIterator[AsyncClient]:
    """A client of what these tasks serve at an address; fails if one ends, or after `seconds`."""
    tasks = [asyncio.create_task(run()) for run in runs]
    try:
        async with AsyncClient(address) as client, asyncio.timeout(seconds):
            await served(partial(client.wait_ready, LONG), tasks)
            yield client
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def served(
    wait: Callable[[], Awaitable[None]], tasks: Sequence[asyncio.Task[object]]
) -> None:
    waiting = asyncio.ensure_future(wait())
    await asyncio.wait([waiting, *tasks], return_when=asyncio.FIRST_COMPLETED)
    for task in tasks:
        if task.done():
            task.result()
    await waiting
