"""A question that must know of a write waits until it is served, and no longer than it may."""

import asyncio

import pytest

from winnow.content_node.live.sequence_waiter import SequenceWaiter
from winnow.deadline import Deadline
from winnow.errors import DeadlineExceededError


async def test_a_served_write_is_not_waited_for() -> None:
    served = SequenceWaiter(3)
    await served.wait(3, Deadline.after(-1))
    await served.wait(0, Deadline.after(-1))


async def test_each_waits_for_its_own_write() -> None:
    served = SequenceWaiter()
    order: list[int] = []

    async def wait(sequence: int) -> None:
        await served.wait(sequence, Deadline.after(60))
        order.append(sequence)

    waiting = [asyncio.create_task(wait(sequence)) for sequence in (5, 2, 3)]
    await asyncio.sleep(0)
    served.advance(3)
    await asyncio.gather(*waiting[1:])
    assert sorted(order) == [2, 3]
    served.advance(2)  # nothing goes back
    assert served.sequence == 3
    served.advance(9)
    await waiting[0]


async def test_a_write_that_does_not_come_is_waited_for_until_the_deadline() -> None:
    served = SequenceWaiter(4)
    with pytest.raises(DeadlineExceededError, match=r"write 7 was not served in time.* is 4"):
        await served.wait(7, Deadline.after(0.01))
    assert not served._waiters


async def test_a_cancelled_wait_is_forgotten_and_others_end() -> None:
    served = SequenceWaiter()
    one, other = (asyncio.create_task(served.wait(2, Deadline.after(60))) for _ in range(2))
    await asyncio.sleep(0)
    one.cancel()
    with pytest.raises(asyncio.CancelledError):
        await one
    assert len(served._waiters) == 1
    served.advance(2)
    await other
