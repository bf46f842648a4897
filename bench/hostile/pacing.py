"""Doing something many times, spread evenly over a time, and counting what came of it."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable

AT_ONCE = 64
"""Under way together, unless said otherwise."""


async def paced(
    count: int, seconds: float, act: Callable[[int], Awaitable[str]], at_once: int = AT_ONCE
) -> Counter[str]:
    """Calls `act` with 0, 1, … until it was `count` times or the time is over.

    Returns how often each outcome came, once all have ended.
    """
    clock, room = asyncio.get_running_loop().time, asyncio.Semaphore(at_once)
    began, outcomes, tasks = clock(), Counter[str](), set[asyncio.Task[None]]()

    async def one(number: int) -> None:
        try:
            outcomes[await act(number)] += 1
        finally:
            room.release()

    for number in range(count):
        await asyncio.sleep(max(began + number * seconds / count - clock(), 0.0))
        await room.acquire()
        if clock() - began >= seconds:
            room.release()
            break
        task = asyncio.create_task(one(number))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)
    return outcomes
