"""The target of an attack, and doing something many times at an even pace."""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """Addresses of a cluster, and the length of an attack on it."""

    front: str = ""
    """HOST:PORT."""
    node: str = ""
    """HOST:PORT of a content node."""
    http: str = ""
    """HOST:PORT where the front serves HTTP."""
    seconds: float = 0.0
    seed: int = 0


Attack = Callable[[Target], Coroutine[Any, Any, Counter[str]]]
"""Attacks until its seconds are over; returns how often each outcome came."""


def host_and_port(address: str) -> tuple[str, int]:
    """Splits HOST:PORT as sockets take it."""
    host, _, port = address.rpartition(":")
    return host, int(port)


async def paced(
    count: int, seconds: float, act: Callable[[int], Awaitable[str]], at_once: int = 64
) -> Counter[str]:
    """Calls `act` with 0, 1, … spread evenly over `seconds`, `at_once` at a time at most.

    Ends after `count` calls, or when the time is over and those under way have ended.

    Returns:
        how often each outcome came

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
