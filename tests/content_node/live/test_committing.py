"""Writes that wait at the same time are stored in one transaction, and nobody is told too early."""

import asyncio
import gc
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from live_writes import delete
from tenacious import turn

from winnow.content_node.live.group_commit import GroupCommit
from winnow.deadline import Deadline
from winnow.domain.write import Outcome, Write, Written
from winnow.errors import (
    DeadlineExceededError,
    InvalidRequestError,
    OverloadedError,
    UnavailableError,
    Violation,
)


class Disk:
    """Stores writes when it is let to."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.go_on.set()
        self.begun = threading.Event()
        self.transactions: list[list[str]] = []
        self.fails: Exception | None = None
        self.shown: list[int] = []

    def commit(self, calls: Sequence[Sequence[Write]]) -> list[list[Written]]:
        self.begun.set()
        assert self.go_on.wait(60)
        if self.fails:
            raise self.fails
        self.transactions.append([write.id for writes in calls for write in writes])
        return [[Written(Outcome.STORED, len(self.transactions)) for _ in w] for w in calls]

    def show(self) -> None:
        self.shown.append(len(self.transactions))

    async def stop(self) -> None:
        """The next transaction begins, and does not end."""
        self.begun.clear()
        self.go_on.clear()

    async def has_begun(self) -> None:
        assert await asyncio.to_thread(self.begun.wait, 60)


@pytest.fixture
def disk() -> Disk:
    return Disk()


def write(committing: GroupCommit, *names: str) -> "asyncio.Task[list[Written]]":
    writes = [delete(name) for name in names]
    return asyncio.create_task(committing.write(writes, Deadline.after(60)))


async def test_all_who_wait_meanwhile_share_the_next_transaction(disk: Disk) -> None:
    committing = GroupCommit(disk.commit, disk.show)
    await disk.stop()
    first = write(committing, "a")
    await disk.has_begun()
    others = [write(committing, name, name) for name in "bcd"]
    await turn()
    assert committing.queued_writes == 7
    disk.go_on.set()
    assert await first == [Written(Outcome.STORED, 1)]
    assert await asyncio.gather(*others) == [[Written(Outcome.STORED, 2)] * 2] * 3
    assert disk.transactions == [["a"], list("bbccdd")]
    assert committing.queued_writes == 0
    await committing.close(lambda: None)


async def test_wrong_writes_of_one_caller_do_not_fail_those_of_others(disk: Disk) -> None:
    def commit(calls: Sequence[Sequence[Write]]) -> list[list[Written] | Exception]:
        wrong = InvalidRequestError(Violation("writes[0].id", "is empty"))
        stored = disk.commit(calls)
        return [one if call[0].id else wrong for call, one in zip(calls, stored, strict=True)]

    committing = GroupCommit(commit, disk.show)
    await disk.stop()
    first = write(committing, "a")
    await disk.has_begun()
    wrong, right = write(committing, ""), write(committing, "b")
    await turn()
    disk.go_on.set()
    assert await first == [Written(Outcome.STORED, 1)]
    with pytest.raises(InvalidRequestError, match="is empty"):
        await wrong
    assert await right == [Written(Outcome.STORED, 2)]
    assert committing.queued_writes == 0
    await committing.close(lambda: None)


async def test_writes_are_shown_before_callers_get_results(disk: Disk) -> None:
    committing = GroupCommit(disk.commit, disk.show)
    await write(committing, "a")
    assert disk.shown == [1]
    await committing.close(lambda: None)


async def test_a_transaction_holds_no_more_than_it_may_and_calls_stay_whole(disk: Disk) -> None:
    committing = GroupCommit(disk.commit, disk.show, max_batch=3)
    await disk.stop()
    calls = [write(committing, "a")]
    await disk.has_begun()
    calls += [write(committing, *names) for names in ("bb", "cc", "ddddd", "e")]
    await turn()
    disk.go_on.set()
    await asyncio.gather(*calls)
    assert disk.transactions == [["a"], ["b", "b"], ["c", "c"], ["d"] * 5, ["e"]]
    await committing.close(lambda: None)


async def test_too_many_that_wait_are_refused_and_there_is_room_again(disk: Disk) -> None:
    committing = GroupCommit(disk.commit, disk.show, max_queued=3)
    await disk.stop()
    first = write(committing, "a", "b")
    await disk.has_begun()
    second = write(committing, "c")
    with pytest.raises(
        OverloadedError, match="3 writes are waiting to be stored, the limit is 3"
    ) as caught:
        await write(committing, "d")
    assert caught.value.retry_after > 0
    disk.go_on.set()
    await asyncio.gather(first, second)
    await write(committing, *"abcdefg")  # alone, so that it can be stored at all
    await committing.close(lambda: None)


async def test_a_caller_that_gives_up_takes_nothing_away_from_others(disk: Disk) -> None:
    committing = GroupCommit(disk.commit, disk.show)
    await disk.stop()
    first = write(committing, "a")
    await disk.has_begun()
    waiting, gone, last = (write(committing, name) for name in "bcd")
    await turn()
    first.cancel()
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    disk.go_on.set()
    assert await waiting == await last == [Written(Outcome.STORED, 2)]
    assert disk.transactions == [["a"], ["b", "d"]]  # what was on its way is stored
    assert committing.queued_writes == 0
    await committing.close(lambda: None)


async def test_an_expired_call_fails_and_is_not_stored(disk: Disk) -> None:
    committing = GroupCommit(disk.commit, disk.show)
    await disk.stop()
    first = write(committing, "a")
    await disk.has_begun()
    late = asyncio.create_task(committing.write([delete("b")], Deadline.after(-1)))
    await turn()
    disk.go_on.set()
    await first
    with pytest.raises(DeadlineExceededError, match="before the writes were stored"):
        await late
    assert disk.transactions == [["a"]]
    await committing.close(lambda: None)


async def test_a_failed_transaction_fails_its_callers_and_not_the_next_one(
    disk: Disk,
) -> None:
    committing = GroupCommit(disk.commit, disk.show)
    disk.fails = OverloadedError("the disk is full")
    calls = [write(committing, name) for name in "ab"]
    for call in calls:
        with pytest.raises(OverloadedError, match="full"):
            await call
    disk.fails = None
    assert await write(committing, "c") == [Written(Outcome.STORED, 1)]
    assert len(disk.shown) >= 2  # a part of the failed one may be there to be seen
    await committing.close(lambda: None)


async def test_work_is_done_alone_and_to_its_end(disk: Disk) -> None:
    committing = GroupCommit(disk.commit, disk.show)
    await disk.stop()
    first = write(committing, "a")
    await disk.has_begun()
    done = threading.Event()
    work = asyncio.create_task(committing.run_alone(done.set))
    await turn()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    assert not done.is_set()
    disk.go_on.set()
    await first
    await committing.close(lambda: None)
    assert done.is_set()
    assert await GroupCommit(disk.commit, disk.show).run_alone(lambda: 7) == 7


async def test_a_failure_of_work_whose_caller_has_gone_is_not_reported_as_unhandled(
    disk: Disk,
) -> None:
    unhandled: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: unhandled.append(context))
    committing = GroupCommit(disk.commit, disk.show)

    def fail() -> None:
        raise UnavailableError("too late")

    await disk.stop()
    first = write(committing, "a")
    await disk.has_begun()
    work = asyncio.create_task(committing.run_alone(fail))
    await turn()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work
    disk.go_on.set()
    await first
    await committing.close(lambda: None)
    del work
    gc.collect()
    assert not unhandled


async def test_closing_stores_waiting_writes_and_takes_no_more(disk: Disk) -> None:
    committing = GroupCommit(disk.commit, disk.show)
    await disk.stop()
    calls = [write(committing, "a")]
    await disk.has_begun()
    calls.append(write(committing, "b"))
    await turn()
    last: list[int] = []
    closing = asyncio.create_task(committing.close(lambda: last.append(len(disk.transactions))))
    await turn()
    with pytest.raises(UnavailableError, match="leaving"):
        await write(committing, "c")
    with pytest.raises(UnavailableError, match="leaving"):
        await committing.run_alone(lambda: None)
    disk.go_on.set()
    await closing
    assert last == [2]
    await asyncio.gather(*calls)
