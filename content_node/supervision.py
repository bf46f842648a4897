"""Tasks that run as long as the node: a task that ends is a bug, and is restarted.

These tasks have their state on disk, so a restart loses nothing. A node that keeps serving is
better than one that ends; its log says what happened.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

from winnow.content_node.merging.policy import retry_after
from winnow.deadline import Clock

_log = structlog.get_logger("content_node")
_GOOD = 600.0
"""Seconds of running after which the next pause is short again."""
Sleep = Callable[[float], Awaitable[None]]


async def keep_running(
    name: str,
    run: Callable[[], Awaitable[None]],
    sleep: Sleep = asyncio.sleep,
    clock: Clock = time.monotonic,
) -> None:
    """Runs a task until this is cancelled, and restarts it after each end, with growing pauses.

    `name` describes the task in the log.
    """
    ends = 0
    while True:
        started = clock()
        try:
            await run()
        except Exception:  # noqa: BLE001 (nobody else would notice)
            _log.exception(f"{name} failed and is restarted")
        else:
            _log.error(f"{name} ended and is restarted")
        ends = 1 if clock() - started >= _GOOD else ends + 1
        await sleep(retry_after(ends))
