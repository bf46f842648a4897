"""Processes several messages of a stream concurrently, and finishes them in their order.

A message may be encoded while an earlier message is stored, but is never stored before it. So of
two passages with the same id the later one counts.
"""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import Any, TypeVar

from winnow.errors import LeavingError

Message = TypeVar("Message")
MessageResult = TypeVar("MessageResult")
AwaitTurn = Callable[[], Awaitable[None]]
"""Waits until the previous message is finished; raises the error of the previous message."""


async def ordered_pipeline(
    messages: AsyncIterator[Message],
    process: Callable[[Message, AwaitTurn], Awaitable[MessageResult]],
    on_result: Callable[[MessageResult], None],
    max_in_flight: int,
) -> None:
    """Processes messages until the stream ends; reads none while `max_in_flight` are in flight.

    `process` starts when a message has been read. `on_result` gets the results in order. The first
    error, of a message or of the stream, is raised immediately and cancels the other messages. If
    something else cancels `process`, such as a closing thread pool, LeavingError is raised.
    """
    slots = asyncio.Semaphore(max_in_flight)
    previous: asyncio.Task[None] | None = None

    async def process_in_turn(message: Message, await_turn: AwaitTurn) -> None:
        try:
            result = await process(message, await_turn)
        except asyncio.CancelledError as error:
            if _is_cancelled():
                raise
            # a TaskGroup would ignore a cancelled task
            raise LeavingError("the node is leaving") from error
        await await_turn()
        on_result(result)
        slots.release()

    try:
        async with asyncio.TaskGroup() as group:
            await slots.acquire()
            async for message in messages:
                await_turn = partial(_await_task, previous)
                previous = group.create_task(process_in_turn(message, await_turn))
                await slots.acquire()
    except BaseExceptionGroup as errors:
        raise errors.exceptions[0] from None


def _is_cancelled() -> bool:
    """Whether the current task itself was cancelled, and not only a future that it awaits."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


async def _await_task(task: "asyncio.Task[Any] | None") -> None:
    if task is not None:
        await asyncio.wait([task])  # does not cancel `task` if this wait is cancelled
        task.result()
