"""Runs a server together with a background task that it needs, such as polling content nodes."""

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import structlog

from winnow.errors import WinnowError

BackgroundTasks = Mapping[str, Callable[[], Coroutine[Any, Any, None]]]
"""Functions that return the coroutine of a task, by the task's name in errors and logs."""
_log = structlog.get_logger("stateless")


async def serve_with_task(
    serving: Coroutine[Any, Any, None], task: Coroutine[Any, Any, None], name: str = "content nodes"
) -> None:
    """Runs `serving` and `task` until `serving` ends, then cancels `task`.

    If `task` ends first, `serving` is cancelled and the process should end. Only a bug ends the
    task, so its state must not be used again. A front has no state to lose: `winnow up`, compose or
    Kubernetes restart it, and callers use other fronts meanwhile.

    Raises:
        WinnowError: `task` ended first. The message has its `name`.

    """
    server, supervised = asyncio.create_task(serving), asyncio.create_task(task)
    try:
        await asyncio.wait((server, supervised), return_when=asyncio.FIRST_COMPLETED)
        ended_first = supervised.done() and not server.done()
        if ended_first:
            _log.error(f"supervision of {name} ended", exc_info=_task_error(supervised))
    finally:
        # end the server first: the questions that it still answers need the task
        for each in (server, supervised):
            each.cancel()
            await asyncio.wait([each])
    if ended_first:
        raise WinnowError(
            f"the background task of {name} ended ({_task_error(supervised)!r}): restart the front"
        )
    server.result()


def _task_error(task: asyncio.Task[None]) -> BaseException | None:
    return None if task.cancelled() else task.exception()
