"""A task of a node that dies is told and runs again."""

import asyncio
from collections.abc import Callable

import pytest
from structlog.testing import capture_logs
from tenacious import happens

from winnow.content_node.file_changes import watch_changes
from winnow.content_node.shard.changes import FileChange
from winnow.content_node.supervision import keep_running


class Stage:
    """A task that ends as it is told to, and pauses that take no time."""

    def __init__(self, *ends: Callable[[], None]) -> None:
        self.ends, self.runs = list(ends), 0
        self.pauses: list[float] = []
        self.now = 0.0

    async def run(self) -> None:
        self.runs += 1
        if not self.ends:
            await asyncio.Event().wait()
        self.ends.pop(0)()

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    def keep(self) -> asyncio.Task[None]:
        return asyncio.create_task(keep_running("merging", self.run, self.sleep, lambda: self.now))


def fail() -> None:
    raise RuntimeError("a mistake")


async def test_a_failed_task_is_logged_and_restarted_after_growing_pauses() -> None:
    stage = Stage(fail, fail, lambda: None)
    with capture_logs() as logs:
        task = stage.keep()
        await happens(lambda: stage.runs == 4)
    assert stage.pauses == [1, 2, 4]
    assert [each["event"] for each in logs] == [
        *("merging failed and is restarted", "merging failed and is restarted"),
        "merging ended and is restarted",
    ]
    assert not task.done()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_after_a_long_good_run_the_pause_is_short_again() -> None:
    stage = Stage(fail, fail)

    def later() -> None:
        stage.now += 1_000.0
        fail()

    stage.ends.append(later)
    task = stage.keep()
    await happens(lambda: stage.runs == 4)
    assert stage.pauses == [1, 2, 1]
    task.cancel()


async def test_a_change_that_could_not_be_reported_is_reported_after_the_next_look() -> None:
    told: list[FileChange | None] = []
    changes = iter([FileChange("a file is gone", readable=True)] * 2 + [None] * 2)
    turns = asyncio.Semaphore(4)

    async def tell(change: FileChange | None) -> None:
        told.append(change)
        if len(told) in (1, 3):
            raise RuntimeError("a mistake")

    async def sleep(_: float) -> None:
        await turns.acquire()

    task = asyncio.create_task(watch_changes(lambda: next(changes), tell, 1.0, sleep))
    await happens(lambda: len(told) == 4)
    assert [each and each.reason for each in told] == ["a file is gone"] * 2 + [None] * 2
    task.cancel()
