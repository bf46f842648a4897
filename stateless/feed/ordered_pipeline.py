"""Work on the messages of a stream: several are in hand, and they are done in their order.

A later message may be encoded while an earlier one is stored. It is never stored before it: of two
passages with one id the later one counts.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from winnow.errors import LeavingError

Message = TypeVar("Message")
Done = TypeVar("Done")
Turn = Callable[[], Awaitable[None]]
"""Waits until the previous message is done; raises the previous message's error."""


async def ordered_pipeline(
    messages: AsyncIterator[Message],
    work: Callable[[Message, Turn], Awaitable[Done]],
    done: Callable[[Done], None],
    most: int,
) -> None:
    """Works on messages until the stream ends. No message is read while `most` are in hand.

    `work` is begun for each message at once, and `done` gets the results in order. An error of a
    message or of reading is raised at once, and work on the other messages is cancelled. Work that
    others cancel, such as threads that close, raises LeavingError: its message was not done.
    """
    room = asyncio.Semaphore(most)
    before: asyncio.Task[None] | None = None

    async def one(message: Message, turn: Turn) -> None:
        try:
            result = await work(message, turn)
        except asyncio.CancelledError as error:
            if _is_cancelled():
                raise
            # a group takes a cancelled task for one that has succeeded
            raise LeavingError("the node is leaving") from error
        await turn()
        done(result)
        room.release()

    try:
        async with asyncio.TaskGroup() as group:
            await room.acquire()
            async for message in messages:
                before = group.create_task(one(message, partial(_after, before)))
                await room.acquire()
    except BaseExceptionGroup as failed:
        raise failed.exceptions[0] from None


def _is_cancelled() -> bool:
    """Whether the present task is cancelled, and not only something that it waits for."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


async def _after(before: "asyncio.Task[Any] | None") -> None:
    if before is not None:
        await asyncio.wait([before])  # which is not cancelled with this task
        before.result()
