"""A shard's failure is an outcome, not an exception."""

import asyncio

import pytest

from stateless.scatter import Gathered, scatter
from winnow.deadline import Deadline
from winnow.domain.coverage import ShardStatus
from winnow.errors import (
    DeadlineExceededError,
    IdentityError,
    OverloadedError,
    UnavailableError,
    WinnowError,
)


async def gives(value: int) -> int:
    return value


async def fails(error: Exception) -> int:
    raise error


async def hangs(ended: asyncio.Event, begun: asyncio.Event | None = None) -> int:
    if begun is not None:
        begun.set()
    try:
        await asyncio.Event().wait()
    finally:
        ended.set()
    return 0


@pytest.mark.parametrize(
    ("error", "status"),
    [
        (DeadlineExceededError("late"), ShardStatus.TIMEOUT),
        (UnavailableError("gone"), ShardStatus.UNAVAILABLE),
        (OverloadedError("full"), ShardStatus.OVERLOADED),
        (IdentityError("other"), ShardStatus.FAILED),
        (WinnowError("?"), ShardStatus.FAILED),
        (ZeroDivisionError("a bug"), ShardStatus.FAILED),
    ],
)
async def test_every_error_becomes_a_status(error: Exception, status: ShardStatus) -> None:
    gathered = await scatter({0: gives(7), 1: fails(error)}, Deadline.after(5))
    assert gathered.results == {0: 7}
    assert gathered.failures[1].status is status
    assert gathered.failures[1].reason


async def test_a_bug_tells_no_details_to_users() -> None:
    gathered = await scatter({1: fails(ZeroDivisionError("secret"))}, Deadline.after(5))
    assert "secret" not in gathered.failures[1].reason


async def test_what_is_late_is_cancelled_and_timed_out() -> None:
    ended = asyncio.Event()
    gathered = await scatter({0: gives(1), 1: hangs(ended)}, Deadline.after(0.05))
    assert gathered.results == {0: 1}
    assert gathered.failures[1].status is ShardStatus.TIMEOUT
    await asyncio.wait_for(ended.wait(), 5)


async def test_cancelling_the_caller_cancels_every_call() -> None:
    ended = [asyncio.Event(), asyncio.Event()]
    begun = [asyncio.Event(), asyncio.Event()]
    calls = {n: hangs(ended[n], begun[n]) for n in range(2)}
    task = asyncio.create_task(scatter(calls, Deadline.after(60)))
    await asyncio.wait_for(asyncio.gather(*(event.wait() for event in begun)), 5)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await asyncio.wait_for(asyncio.gather(*(event.wait() for event in ended)), 5)


async def test_nobody_asked_is_nobody_failed() -> None:
    gathered: Gathered[int] = await scatter({}, Deadline.after(1))
    assert (gathered.results, gathered.failures) == ({}, {})
