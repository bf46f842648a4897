"""Ending the task that follows a journal."""

import asyncio

from tenacious import LONG

from winnow.content_node.journal.composing import cancel_and_wait


async def test_a_task_that_loses_a_cancellation_is_ended() -> None:
    lost = 0

    async def follow() -> None:
        nonlocal lost
        while True:
            try:
                await asyncio.Event().wait()
            except asyncio.CancelledError:
                if lost == 2:
                    raise
                lost += 1

    task = asyncio.create_task(follow())
    await asyncio.sleep(0)
    async with asyncio.timeout(LONG):
        await cancel_and_wait(task, interval=0.001)
    assert task.cancelled()
    assert lost == 2


async def test_an_ended_task_stays_ended() -> None:
    task = asyncio.create_task(asyncio.sleep(0, "done"))
    await task
    await cancel_and_wait(task)
    assert task.result() == "done"
