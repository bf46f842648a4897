"""The target of an attack, and the pacing of its calls."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Addresses of a cluster, and the duration and seed of an attack on it."""

    front: str = ""
    """HOST:PORT of a front node."""
    node: str = ""
    """HOST:PORT of a content node."""
    http: str = ""
    """HOST:PORT of the front's HTTP server."""
    seconds: float = 0.0
    seed: int = 0


Attack = Callable[[Target], Coroutine[Any, Any, Counter[str]]]
"""Attacks a target for its duration; returns the count of each outcome."""


def host_and_port(address: str) -> tuple[str, int]:
    """Splits HOST:PORT into the host and the port number."""
    host, _, port = address.rpartition(":")
    return host, int(port)


async def run_paced(
    count: int, seconds: float, send: Callable[[int], Awaitable[str]], max_concurrent: int = 64
) -> Counter[str]:
    """Calls `send` with 0, 1, … at an even rate; at most `max_concurrent` calls run concurrently.

    Ends after `count` calls, or when `seconds` are over and the running calls have ended.

    Returns:
        the count of each outcome

    """
    clock, slots = asyncio.get_running_loop().time, asyncio.Semaphore(max_concurrent)
    started, outcomes, tasks = clock(), Counter[str](), set[asyncio.Task[None]]()

    async def run_one(number: int) -> None:
        try:
            outcomes[await send(number)] += 1
        finally:
            slots.release()

    for number in range(count):
        await asyncio.sleep(max(started + number * seconds / count - clock(), 0.0))
        await slots.acquire()
        if clock() - started >= seconds:
            slots.release()
            break
        task = asyncio.create_task(run_one(number))
        tasks.add(task)
        task.add_done_callback(tasks.discard)
    await asyncio.gather(*tasks)
    return outcomes
