import asyncio

import pytest
from tenacious import turn

from winnow.stateless.answer.scatter import CompletionOrder


async def said(what: str, after: asyncio.Event | None = None) -> str:
    if after is not None:
        await after.wait()
    return what


async def test_tasks_are_told_of_once_in_the_order_in_which_they_end() -> None:
    first, second = asyncio.Event(), asyncio.Event()
    a, b = (asyncio.create_task(said(n, e)) for n, e in (("a", first), ("b", second)))
    ended = CompletionOrder([a, b])
    second.set()
    assert await ended.next(None) == [b]
    first.set()
    assert await ended.next(None) == [a]
    assert await ended.next(None) == []


async def test_tasks_that_ended_together_are_told_of_together() -> None:
    tasks = [asyncio.create_task(said(name)) for name in "abc"]
    ended = CompletionOrder(tasks)
    await asyncio.wait(tasks)
    assert set(await ended.next(None)) == set(tasks)


@pytest.mark.parametrize("seconds", [0.0, -1.0])
async def test_no_task_is_told_of_when_the_time_is_over(seconds: float) -> None:
    never = asyncio.create_task(said("a", asyncio.Event()))
    assert await CompletionOrder([never]).next(seconds) == []
    never.cancel()


async def test_a_task_that_has_ended_is_told_of_even_if_the_time_is_over() -> None:
    task = asyncio.create_task(said("a"))
    await task
    assert await CompletionOrder([task]).next(0.0) == [task]


async def test_a_task_that_was_told_of_when_the_time_was_over_is_not_told_of_again() -> None:
    task, never = (asyncio.create_task(each) for each in (said("a"), said("b", asyncio.Event())))
    await task
    ended = CompletionOrder([task, never])
    assert await ended.next(0.0) == [task]
    await turn()  # now its own callback tells of it, too
    assert await ended.next(0.0) == []
    never.cancel()
