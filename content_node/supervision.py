"""Tasks that run as long as the node: one that ends is a mistake in the program, and runs again.

What such a task looks after is on the disk, so it loses nothing. A node that serves on is worth
more than one that ends; its log says what happened.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

from winnow.content_node.merging.policy import retry_after
from winnow.deadline import Clock

_log = structlog.get_logger("content_node")
_GOOD = 600.0
"""Seconds after which a task that ends has run well: the next pause is short again."""
Sleep = Callable[[float], Awaitable[None]]


async def keep_running(
    name: str,
    run: Callable[[], Awaitable[None]],
    sleep: Sleep = asyncio.sleep,
    clock: Clock = time.monotonic,
) -> None:
    """Runs a task until this is cancelled: again after each end, with growing pauses.

    `name` says in the log what the task does.
    """
    ends = 0
    while True:
        started = clock()
        try:
            await run()
        except Exception:  # noqa: BLE001 (nobody else would notice)
            _log.exception(f"{name} failed and begins again")
        else:
            _log.error(f"{name} ended and begins again")
        ends = 1 if clock() - started >= _GOOD else ends + 1
        await sleep(retry_after(ends))
