"""Nodes follow an assignment: they receive, serve and close shards."""

import asyncio
import errno
import shutil
from contextlib import AsyncExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import structlog
from assigned_nodes import AssignedNode, Nodes, assigned_node, briefly
from awaited import AwaitedCount

from winnow.bundle import Bundle
from winnow.content_node.composing import assigned_shards
from winnow.content_node.composing.assigned_shards import AssignedShards
from winnow.content_node.composing.shard import RunningShard
from winnow.content_node.composing.shards import RunningShards
from winnow.content_node.live.custody import Custody, Role, read_custody, write_custody
from winnow.content_node.pull_shard import LoggedProgress
from winnow.content_node.shard.manifest import SHARD_FILE
from winnow.content_node.snapshots.taking import take_snapshot
from winnow.deadline import Deadline
from winnow.domain.shard import NodeReport, shard_name, shard_of
from winnow.domain.write import Outcome, Write
from winnow.errors import ArtefactError, NotLoadedError, UnavailableError
from winnow.settings.errors import SettingsError


def deletion(shard: int, version: int = 1) -> Write:
    """A deletion of a passage that the shard lacks, with a version: it is stored."""
    name = next(f"id-{n}" for n in range(100) if shard_of(f"id-{n}", 3) == shard)
    return Write(name, version)


async def test_a_shard_moves_and_its_directory_with_it(nodes: Nodes, tmp_path: Path) -> None:
    a, b = await nodes.start("a"), await nodes.start("b")
    await a.serves(0, 1, 2)
    assert not (await b.report()).infos
    nodes.assign({1: "b"})
    await b.serves(1)
    await a.serves(0, 2)
    assert (await b.report()).node == "b"
    moved = tmp_path / "a" / shard_name(1, 3)
    await a.reports(lambda _: not moved.exists())
    assert [each.name for each in (tmp_path / "b").glob("shard-*")] == [shard_name(1, 3)]
    assert False not in (*a.health, *b.health)


async def test_fronts_can_find_the_new_node_before_the_old_one_hides_its_shard(
    nodes: Nodes, tmp_path: Path
) -> None:
    """A front polls the nodes at different moments, and must never see the shard nowhere."""
    reported: list[set[int]] = []

    async def sleep(seconds: float) -> None:
        if seconds > 1.0:  # it waits until it was polled
            reported.append({info.shard for info in (await a.report()).infos})
        await briefly(seconds)

    a = await nodes.start("a", sleep=sleep)
    b = await nodes.start("b")
    nodes.assign({1: "b"})
    await b.serves(1)
    await a.serves(0, 2)
    moved = tmp_path / "a" / shard_name(1, 3)
    await a.reports(lambda _: not moved.exists())
    assert reported == [{0, 1, 2}, {0, 2}]


async def test_writes_go_with_a_shard_and_then_to_its_new_node(
    nodes: Nodes, tmp_path: Path
) -> None:
    a, b = await nodes.start("a", feed=True), await nodes.start("b", feed=True)
    old = a.shards.served.searcher(1).writing.writer
    (written,) = await old.write([deletion(1)], Deadline.after(60))
    assert written.outcome is Outcome.STORED
    nodes.assign({1: "b"})
    await b.reports(lambda report: [i.writes_elsewhere for i in report.infos] == [False])
    with pytest.raises(UnavailableError):
        await old.write([deletion(1)], Deadline.after(60))
    new = b.shards.served.searcher(1).writing.writer
    (again,) = await new.write([deletion(1, version=2)], Deadline.after(60))
    assert (again.outcome, again.sequence) == (Outcome.STORED, 2)
    assert again.log_id == written.log_id
    await a.serves(0, 2)
    assert read_custody(tmp_path / "b" / shard_name(1, 3)) == Custody(moves=1)


async def test_a_shard_moves_back_after_it_has_moved(nodes: Nodes) -> None:
    a, b = await nodes.start("a", feed=True), await nodes.start("b", feed=True)
    for holders in ({1: "b"}, {}, {1: "b", 2: "b"}, {}):
        nodes.assign(holders)
        await a.serves(*{0, 1, 2} - holders.keys())
        await b.serves(*holders)


async def test_a_shard_that_is_moved_back_at_once_keeps_an_owner(nodes: Nodes) -> None:
    a, b = await nodes.start("a", feed=True), await nodes.start("b", feed=True)
    for _ in range(3):
        nodes.assign({0: "b"})
        await b.reports(lambda report: bool(report.infos or report.faults))
        nodes.assign({})
        await a.reports(
            lambda report: {i.shard for i in report.infos if not i.writes_elsewhere} == {0, 1, 2}
        )
        await b.serves()


async def test_a_shard_whose_closing_failed_is_used_again(nodes: Nodes) -> None:
    """For example because the system has no free thread. Otherwise the move back never ends."""
    waits = 0

    async def sleep(seconds: float) -> None:
        nonlocal waits
        waits += seconds > 1.0
        if seconds > 1.0 and waits == 2:  # it is hidden
            nodes.assign({})
            raise RuntimeError("can't start new thread")
        await briefly(seconds)

    a, b = await nodes.start("a", sleep=sleep), await nodes.start("b")
    nodes.assign({1: "b"})
    await b.serves(1)
    await b.serves()
    await a.serves(0, 1, 2)


async def test_a_shard_moves_back_although_its_disk_failed_when_it_was_closed(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its metrics would be there already, so it could never be opened again."""
    closes, close = AwaitedCount(), RunningShard.close

    async def fail_later(self: RunningShard) -> None:
        await close(self)
        closes.add()
        raise OSError(errno.EIO, "I/O error")

    a, b = await nodes.start("a"), await nodes.start("b")
    nodes.assign({1: "b"})
    await b.serves(1)
    with monkeypatch.context() as patched:
        patched.setattr(RunningShard, "close", fail_later)
        await closes.reaches(1)
    nodes.assign({})
    await a.serves(0, 1, 2)


async def test_a_node_that_is_started_again_goes_on_with_a_move(nodes: Nodes) -> None:
    a = await nodes.start("a", feed=True)
    async with AsyncExitStack() as first:
        await nodes.start("b", first, feed=True)
        nodes.assign({2: "b"})
    b = await nodes.start("b", feed=True)
    nodes.assign({2: "b"})  # with its new address
    await b.serves(2)
    await a.serves(0, 1)


async def test_a_copy_that_cannot_follow_its_owner_any_more_is_replaced(
    nodes: Nodes, tmp_path: Path
) -> None:
    """The node repairs it by itself, so no error is logged."""
    a = await nodes.start("a", feed=True)
    writer, copy = a.shards.served.searcher(1).writing.writer, tmp_path / "b" / shard_name(1, 3)
    await writer.write([deletion(1)], Deadline.after(60))
    await asyncio.to_thread(shutil.copytree, tmp_path / "a" / copy.name, copy)
    write_custody(copy, Custody(Role.FOLLOWER, "a"))
    (written,) = await writer.write([deletion(1, version=2)], Deadline.after(60))
    await next(each for each in a.shards.all if each.served.number == 1).merge()
    with structlog.testing.capture_logs() as logs:
        b = await nodes.start("b", feed=True)
        nodes.assign({1: "b"})
        await b.reports(lambda report: [i.writes_elsewhere for i in report.infos] == [False])
    assert [info.sequence for info in (await b.report()).infos] == [written.sequence]
    said = [line["event"] for line in logs]
    assert "the copy of the shard will be replaced" in said
    assert [line for line in logs if line["log_level"] == "error"] == []


async def test_a_node_keeps_a_shard_while_the_other_node_is_silent(nodes: Nodes) -> None:
    a = await nodes.start("a")
    async with AsyncExitStack() as gone:
        await nodes.start("b", gone)
    with structlog.testing.capture_logs() as logs:
        nodes.assign({1: "b"})
        await _until_followed(a)
    assert not any("closed" in line["event"] for line in logs)
    await a.serves(0, 1, 2)


async def test_an_assignment_that_cannot_be_read_changes_nothing(nodes: Nodes) -> None:
    a, b = await nodes.start("a"), await nodes.start("b")
    nodes.assign({1: "b"})
    await b.serves(1)
    nodes.path.write_text("{")
    await _until_followed(a)
    await a.serves(0, 2)
    nodes.path.unlink()
    nodes.assign({2: "b"})  # with version 1 again
    await b.serves(2)
    await a.serves(0, 1)


async def test_a_shard_that_no_node_has_is_a_fault_and_the_others_are_served(
    nodes: Nodes, tmp_path: Path
) -> None:
    lost = tmp_path / "a" / shard_name(2, 3)
    lost.rename(tmp_path / "lost")
    a = await nodes.start("a")
    nodes.assign({})
    report = await a.reports(lambda report: any("--pull" in str(f.error) for f in report.faults))
    assert [fault.shard for fault in report.faults] == [2]
    assert not isinstance(report.faults[0].error, NotLoadedError)  # it tries again
    assert {info.shard for info in report.infos} == {0, 1}


async def test_no_snapshot_is_restored_while_a_node_is_silent(nodes: Nodes, tmp_path: Path) -> None:
    """The silent node may have the shard, and then both would take writes."""
    async with AsyncExitStack() as gone:
        await nodes.start("a", gone)
    b = await nodes.start("b", pull=str(tmp_path / "snapshots"))
    nodes.assign({1: "b"})
    report = await b.reports(lambda report: bool(report.faults))
    report = await b.reports(lambda report: "does not reply" in str(report.faults[0].error))
    assert [fault.shard for fault in report.faults] == [1]


async def test_a_starting_node_reports_all_shards_on_its_disk(
    nodes: Nodes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise another node could restore a snapshot beside a shard that is opened later."""
    reported: list[set[int | None] | str] = []

    async def note(shards: AssignedShards) -> None:
        try:
            reported.append(_numbers(await shards.served.report(Deadline.after(60))))
        except UnavailableError as error:
            reported.append(str(error))

    read, open_shard = AssignedShards._read_assignment, AssignedShards._open_shard

    async def noted_read(self: AssignedShards) -> None:
        await note(self)
        await read(self)

    async def noted_open(self: AssignedShards, *given: Any) -> None:
        await note(self)
        await open_shard(self, *given)

    monkeypatch.setattr(AssignedShards, "_read_assignment", noted_read)
    monkeypatch.setattr(AssignedShards, "_open_shard", noted_open)
    await nodes.start("a")
    assert reported[:4] == ["the node is starting", *[{0, 1, 2}] * 3]


async def test_a_shard_that_is_tried_again_is_reported_throughout(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reported: list[set[int | None]] = []
    tries, remove = AwaitedCount(), RunningShards.remove

    async def noted_remove(self: RunningShards, shard: RunningShard) -> None:
        await remove(self, shard)
        reported.append(_numbers(await self.served.report(Deadline.after(60))))
        tries.add()

    (tmp_path / "a" / shard_name(1, 3) / SHARD_FILE).write_text("damaged")
    monkeypatch.setattr(assigned_shards, "_RETRY_AFTER", 0.0)
    monkeypatch.setattr(RunningShards, "remove", noted_remove)
    await nodes.start("a")
    nodes.assign({})
    await tries.reaches(1)
    assert reported[0] == {0, 1, 2}


def _numbers(report: NodeReport) -> set[int | None]:
    """The shards of which a node tells something."""
    return {*(info.shard for info in report.infos), *(fault.shard for fault in report.faults)}


async def test_one_node_restores_a_shard_of_several_empty_nodes(
    nodes: Nodes, tmp_path: Path, indexes: dict[int, Path]
) -> None:
    """Else each refuses to restore it, because the other one may have it."""
    snapshots = str(tmp_path / "snapshots")
    take_snapshot(indexes[3], snapshots, LoggedProgress(), lambda: datetime.now(UTC))
    both = [await nodes.start(name, pull=snapshots) for name in "bc"]
    nodes.assign(dict.fromkeys(range(3), "bc"))
    for node in both:
        await node.serves(0, 1, 2)


async def test_a_second_node_with_the_name_or_the_directory_of_another_is_refused(
    nodes: Nodes, tmp_path: Path, bundle: Bundle
) -> None:
    a = await nodes.start("a")
    with pytest.raises(ArtefactError, match="is used by another node"):
        async with assigned_node("b", tmp_path / "a", nodes.path, bundle):
            raise AssertionError
    nodes.assign({})
    with pytest.raises(SettingsError, match=f"name a is taken by the node at {a.address}"):
        async with assigned_node("a", tmp_path / "other", nodes.path, bundle):
            raise AssertionError


async def test_shards_that_take_writes_are_on_one_node_only(nodes: Nodes) -> None:
    await nodes.start("a", feed=True)
    b = await nodes.start("b", feed=True)
    nodes.assign({1: "ab"})
    report = await b.reports(lambda report: any("one node" in str(f.error) for f in report.faults))
    assert [fault.shard for fault in report.faults] == [1]


async def test_a_shard_without_writes_can_be_on_several_nodes(nodes: Nodes) -> None:
    a, b = await nodes.start("a"), await nodes.start("b")
    nodes.assign({1: "ab"})
    await b.serves(1)
    await _until_followed(a)
    await a.serves(0, 1, 2)


async def _until_followed(node: AssignedNode) -> None:
    """Waits until a node has looked at the assignment and at the other nodes again."""
    reads = AwaitedCount()
    read = node.shards._read_assignment

    async def counted() -> None:
        await read()
        reads.add()

    node.shards._read_assignment = counted  # type: ignore[method-assign]
    await reads.reaches(3)
