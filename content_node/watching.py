"""Looks at the files of a shard now and then, and tells what became of them.

Knows when to look; what a change is, and what it means to callers, is handed in.
"""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from winnow.content_node.loading import Loading
from winnow.content_node.shard.changes import Change, after

_log = structlog.get_logger("content_node")
Sleep = Callable[[float], Awaitable[None]]


async def watch(
    look: Callable[[], Change | None],
    tell: Callable[[Change | None], Awaitable[None]],
    every: float,
    sleep: Sleep = asyncio.sleep,
) -> None:
    """Tells every change, and None when all is as it was again; until it is cancelled.

    Looks each `every` seconds, in a thread of its own: a file system that hangs holds up neither
    the event loop nor the end of the process. If it cannot look, that is told as a change. What
    could not be told is told after the next look.
    """
    told: Change | None = None
    while True:
        await sleep(every)
        try:
            found = await Loading(look).result()
        except Exception as error:  # noqa: BLE001 (nobody else would notice)
            found = Change(f"the files of the shard cannot be looked at: {error!r}", readable=True)
        if (now := after(told, found)) != told:
            try:
                await tell(now)
            except Exception:  # noqa: BLE001 (told again after the next look)
                _log.exception("a change of the shard's files could not be told")
            else:
                told = now
