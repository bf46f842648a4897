"""Runs work, such as closing, to its end even if the caller is cancelled."""

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

Result = TypeVar("Result")


async def run_uncancelled(work: Coroutine[Any, Any, Result]) -> Result:
    """Runs `work` to its end and returns its result.

    If the caller is cancelled, raises CancelledError after `work` has ended.
    """
    task = asyncio.create_task(work)
    interrupted = False
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError:
            interrupted = True
    result = task.result()
    if interrupted:
        raise asyncio.CancelledError
    return result
