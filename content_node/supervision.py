"""Restarts background tasks of a node. They should never end: an end is a bug, and is logged.

These tasks have their state on disk, so a restart loses nothing, and the node keeps serving.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable

import structlog

from winnow.content_node.merging.policy import retry_after
from winnow.deadline import Clock, Sleep

_log = structlog.get_logger("content_node")
_STABLE_SECONDS = 600.0
"""Seconds of running after which a task counts as stable: its next pause is the shortest."""


async def keep_running(
    name: str,
    run: Callable[[], Awaitable[None]],
    sleep: Sleep = asyncio.sleep,
    clock: Clock = time.monotonic,
) -> None:
    """Runs a task until it is cancelled, and restarts it after each end, with growing pauses.

    `name` is the name of the task in logs.
    """
    ends = 0
    while True:
        started = clock()
        try:
            await run()
        except Exception:  # noqa: BLE001 (nobody awaits this task)
            _log.exception(f"{name} failed and is restarted")
        else:
            _log.error(f"{name} ended and is restarted")
        ends = 1 if clock() - started >= _STABLE_SECONDS else ends + 1
        await sleep(retry_after(ends))
