"""Directories of shards that moved, or that were not copied to the end."""

from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from assigned_nodes import Nodes

from winnow.content_node.transfer.remote import PeerShard
from winnow.domain.shard import shard_name
from winnow.errors import UnavailableError


def leave_files(directory: Path) -> None:
    """Leaves the files of an interrupted copy or deletion."""
    (directory / "content").mkdir(parents=True)
    (directory / "content" / "passages.sqlite").write_bytes(b"part")


async def test_a_shard_is_deleted_although_its_last_copy_was_not_deleted_completely(
    nodes: Nodes, tmp_path: Path
) -> None:
    a, b = await nodes.start("a"), await nodes.start("b")
    moved = tmp_path / "a" / shard_name(1, 3)
    leave_files(moved.with_name(moved.name + ".removed"))
    nodes.assign({1: "b"})
    await b.serves(1)
    await a.reports(lambda _: not list((tmp_path / "a").glob(f"{moved.name}*")))


async def test_what_was_copied_of_a_shard_is_deleted_once_its_move_is_cancelled(
    nodes: Nodes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(_: PeerShard) -> None:
        error = UnavailableError("a:1: failed to connect; last error: ipv4:127.0.0.1:1: refused")
        raise error.with_public("a node could not be reached")

    monkeypatch.setattr(PeerShard, "open_copy", fail)
    first, second = (tmp_path / "b" / f"{shard_name(n, 3)}.partial" for n in (1, 2))
    await nodes.start("a")
    async with AsyncExitStack() as killed:
        await nodes.start("b", killed)
        nodes.assign({1: "b"})
    leave_files(first)
    leave_files(second)
    b = await nodes.start("b")
    assert first.exists()  # its copy resumes
    assert not second.exists()
    nodes.assign({1: "b"})  # with its new address
    reason = "copying it from node a failed: a node could not be reached"
    await b.reports(lambda report: [str(each.error) for each in report.faults] == [reason])
    nodes.assign({})
    await b.reports(lambda report: not report.faults and not first.exists())
