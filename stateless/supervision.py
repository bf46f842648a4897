"""Serves together with a task that serving depends on, such as watching content nodes.

Knows two coroutines; knows neither servers nor nodes.
"""

import asyncio
from collections.abc import Coroutine
from typing import Any

import structlog

from winnow.errors import WinnowError

_log = structlog.get_logger("stateless")


async def supervised(
    serving: Coroutine[Any, Any, None],
    looking: Coroutine[Any, Any, None],
    others: str = "content nodes",
) -> None:
    """Runs `serving` until it ends, and cancels `looking`, which watches `others`, then.

    If `looking` ends first, `serving` is cancelled and the process should end. Only a mistake in
    the program ends it, so its state cannot be trusted for another start in this process. A front
    has no state to lose: `winnow up`, compose and Kubernetes restart it, and callers go to other
    fronts meanwhile.

    Raises:
        WinnowError: `looking` ended first.

    """
    served, looked = asyncio.create_task(serving), asyncio.create_task(looking)
    try:
        await asyncio.wait((served, looked), return_when=asyncio.FIRST_COMPLETED)
        ended_first = looked.done() and not served.done()
        if ended_first:
            _log.error(f"supervision of {others} ended", exc_info=_error(looked))
    finally:
        for task in (served, looked):  # the last questions need the nodes
            task.cancel()
            await asyncio.wait([task])
    if ended_first:
        raise WinnowError(
            f"nobody looks after {others} any more ({_error(looked)!r}): start the front again"
        )
    served.result()


def _error(task: asyncio.Task[None]) -> BaseException | None:
    return None if task.cancelled() else task.exception()
