"""Calls to a shard that may be archived, and when it is archived."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import structlog
from manual_clock import ManualClock
from pydantic import ValidationError
from tenacious import turn
from virtual_loop import in_virtual_time

from winnow.content_node.archiving.archives import Archives
from winnow.content_node.archiving.gate import ShardGate
from winnow.content_node.archiving.policy import ArchivePolicy, ShardUse
from winnow.content_node.settings import NodeSettings
from winnow.deadline import Deadline
from winnow.errors import (
    ArchiveUnreachableError,
    ArtefactError,
    RestoringError,
    UnavailableError,
)


class Restores:
    """Restores that last three seconds, and fail while `error` is set."""

    def __init__(self) -> None:
        self.begun = 0
        self.error: Exception | None = None

    async def __call__(self) -> str:
        self.begun += 1
        await asyncio.sleep(3)
        if self.error is not None:
            raise self.error
        return "shard"


def gate_of(restores: Restores) -> ShardGate[str]:
    return ShardGate(restores, asyncio.get_running_loop().time)


async def call(gate: ShardGate[str], seconds: float) -> str:
    deadline = Deadline.after(seconds, asyncio.get_running_loop().time)
    async with gate.enter(deadline) as inside:
        return inside


@in_virtual_time
async def test_a_call_whose_deadline_passes_is_told_that_the_shard_is_being_restored() -> None:
    """The restore goes on, also if its first caller has left, and serves the later calls."""
    restores = Restores()
    gate = gate_of(restores)
    left = asyncio.create_task(call(gate, 60))
    await turn()
    left.cancel()
    with pytest.raises(RestoringError, match="being restored"):
        await call(gate, 1)
    assert set(await asyncio.gather(call(gate, 60), call(gate, 60))) == {"shard"}
    assert restores.begun == 1
    assert await call(gate, 0.1) == "shard"


@in_virtual_time
async def test_a_failed_restore_is_told_to_all_that_wait_and_tried_again_by_a_later_call() -> None:
    restores = Restores()
    gate = gate_of(restores)
    restores.error = ArtefactError("the store is away")
    for error in await asyncio.gather(call(gate, 60), call(gate, 60), return_exceptions=True):
        assert isinstance(error, UnavailableError)
        assert "the store is away" in str(error)
        assert "away" not in error.public
    restores.error = None
    with pytest.raises(UnavailableError, match="the store is away"):
        await call(gate, 60)  # at once, since a restore has just failed
    await asyncio.sleep(1)
    with pytest.raises(UnavailableError, match="the store is away"):
        gate.begin_restore(pause=10)  # nobody waits for it
    assert restores.begun == 1
    assert await call(gate, 60) == "shard"


@in_virtual_time
async def test_the_gate_is_open_in_the_step_in_which_the_restore_ends() -> None:
    """Calls in between would find neither a stub nor an open shard."""
    loop = asyncio.get_running_loop()
    seen: list[str | None] = []

    async def restore() -> str:
        await asyncio.sleep(3)
        loop.call_soon(lambda: seen.append(gate.opened))
        return "shard"

    gate = ShardGate(restore, loop.time)
    assert await call(gate, 60) == "shard"
    assert seen == ["shard"]


@in_virtual_time
async def test_a_restore_has_no_context_of_the_request_that_began_it() -> None:
    """The tasks of the restored shard live on, and their log lines would name that request."""
    seen: list[dict[str, Any]] = []

    async def restore() -> str:
        seen.append(structlog.contextvars.get_contextvars())
        return "shard"

    with structlog.contextvars.bound_contextvars(index="docs"):
        gate = ShardGate(restore, asyncio.get_running_loop().time)
    with structlog.contextvars.bound_contextvars(request_id="q1"):
        assert await call(gate, 60) == "shard"
    assert seen == [{"index": "docs"}]


@in_virtual_time
async def test_no_call_restores_a_shard_that_was_closed() -> None:
    """It would open a directory that another process uses now, or that is deleted."""
    restores = Restores()
    gate = gate_of(restores)
    waiting = asyncio.create_task(call(gate, 60))
    await turn()
    await gate.close()
    with pytest.raises(UnavailableError, match="closes the shard"):
        await waiting
    with pytest.raises(UnavailableError, match="closes the shard"):
        await call(gate, 60)
    with pytest.raises(UnavailableError, match="closes the shard"):
        gate.touch()
    assert restores.begun == 1


def test_the_gate_closes_only_if_no_call_came_since() -> None:
    """A call that is inside, or that has ended since, keeps the shard open."""
    clock = ManualClock()
    gate: ShardGate[str] = ShardGate(Restores(), clock)
    gate.open("shard")
    since = gate.last_call

    async def use() -> None:
        async with gate.enter(Deadline.after(60, clock)):
            clock.advance(5)
            assert gate.last_call == clock.now
            assert not gate.try_close(clock.now)

    asyncio.run(use())
    assert not gate.try_close(since)
    assert gate.try_close(gate.last_call)
    assert gate.opened is None


def test_a_shard_is_archived_after_a_time_without_calls() -> None:
    """Not without tenants, nor before a deleted tenant has left its files."""
    policy = ArchivePolicy(after=60)
    unused = ShardUse(idle=60, has_tenants=True, deletes_tenant=False)
    assert policy.is_due(unused)
    assert not policy.is_due(replace(unused, idle=59))
    assert not policy.is_due(replace(unused, has_tenants=False))
    assert not policy.is_due(replace(unused, deletes_tenant=True))
    assert not policy.is_due(replace(unused, since_failure=59))
    assert policy.is_due(replace(unused, since_failure=60))


@in_virtual_time
async def test_an_unreachable_archive_is_told_also_while_its_store_hangs() -> None:
    """The place of the archive is for the log of the node, and not for callers."""
    restores = Restores()
    restores.error = ArchiveUnreachableError("cannot use s3://secret")
    clock = ManualClock()
    gate = ShardGate(restores, clock)
    with pytest.raises(RestoringError):
        await call(gate, 1)
    restoring = gate.begin_restore()
    assert restoring is not None
    await asyncio.wait([restoring])
    clock.advance(5)
    with pytest.raises(ArchiveUnreachableError) as refused:  # and not that it is being restored
        await call(gate, 1)
    assert restores.begun == 2
    assert refused.value.public == "the archive of the shard cannot be reached now: try again"


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        ({"archive_url": "s3://b/a"}, "--archive-url needs --feed, or --feed-listen"),
        ({"archive_url": "s3:/b/a", "feed": True}, "two slashes after its scheme"),
        ({"archive_after": 60.0, "feed": True}, "--archive-after needs --archive-url"),
        ({"archive_restores": 2, "feed": True}, "--archive-restores needs --archive-url"),
    ],
)
def test_settings_that_do_not_work_together_are_refused(flags: Any, problem: str) -> None:
    with pytest.raises(ValidationError, match=problem):
        NodeSettings(**flags)


def settings_at(archive: str, **more: Any) -> NodeSettings:
    flags: Any = {"feed": True, "archive_url": archive, **more}
    return NodeSettings(**flags)


def test_an_archive_that_cannot_exist_is_refused_at_the_start(tmp_path: Path) -> None:
    """Otherwise its first use would fail, a day later. A directory may be missing until then."""
    file = tmp_path / "file"
    file.touch()
    for url, problem in (("s4://bucket/a", "s4.*correct --archive-url"), (str(file), "is a file")):
        with pytest.raises(ArtefactError, match=problem):
            Archives.of(settings_at(url))
    assert Archives.of(settings_at(str(tmp_path / "new"))) is not None


@pytest.mark.parametrize("option", ["shard", "shards", "data"])
@pytest.mark.parametrize("scheme", ["", "file://"])
def test_an_archive_among_the_shards_or_around_them_is_refused(
    tmp_path: Path, option: str, scheme: str
) -> None:
    """Archiving a shard removes the files in its directory. Links are followed."""
    directory, link = tmp_path / "node" / "index", tmp_path / "link"
    directory.mkdir(parents=True)
    link.symlink_to(directory)
    where: Any = {option: [directory] if option == "shard" else directory}
    if option == "data":
        where["indexes"] = "indexes.json"
    for archive, problem in (
        (directory, "is in"),
        (link / "archive", "is in"),
        (tmp_path / "node", "contains"),
    ):
        with pytest.raises(ArtefactError, match=f"{archive} {problem} {directory}"):
            Archives.of(settings_at(f"{scheme}{archive}", **where))
    assert Archives.of(settings_at(f"{scheme}{tmp_path}/node/index-archive", **where)) is not None
