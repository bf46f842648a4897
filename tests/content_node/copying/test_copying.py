"""Runs of copying that are cancelled, and shards that are restored meanwhile."""

import asyncio
import contextlib
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Self, cast

import pytest
from live_shards import built
from live_writes import logged
from moving_shards import INDEX, holding, moves, shard_info
from tenacious import LONG, happens, turn

from winnow.catalog import CatalogFile
from winnow.content_node.copying import replacing
from winnow.content_node.copying.encoding import CopyEncoder
from winnow.content_node.copying.index_nodes import IndexNodes, OwnedShard
from winnow.content_node.copying.replacing import IndexCopier
from winnow.content_node.copying.run import CopyRun
from winnow.content_node.copying.shard_contents import ShardContents
from winnow.content_node.transfer.following import LogBatch
from winnow.deadline import Deadline
from winnow.domain.catalog import Catalog, CatalogIndex
from winnow.domain.copying import index_writes, with_copy, with_progress
from winnow.domain.write import Put, Write
from winnow.errors import ArtefactError, DeadlineExceededError, UnavailableError, WinnowError
from winnow.storage.pull import NoProgress

OLD = CatalogIndex(index_id="a1", shards=1, holders={0: ("a",)})
NEW = CatalogIndex(index_id="b2", shards=1, holders={0: ("a",)})
ALIASED = Catalog().with_index("old", OLD, {"a": "a:9000"}).with_alias("docs", "old")
COPYING = with_copy(ALIASED, "new", NEW, "old")
FILLED = with_progress(COPYING, "new", COPYING.version, {0: 0}, {0})


class FakeNodes:
    """The nodes of an index with one shard, whose log has a number of deletions."""

    def __init__(self, name: str, index: CatalogIndex) -> None:
        self.name, self.index, self.writes, self.passages = name, index, 0, 5
        self.log_id = f"log of {name}"
        self.may_read = asyncio.Event()
        """While it is cleared, reading the log waits."""
        self.may_read.set()

    async def shards(self) -> dict[int, OwnedShard]:
        info = replace(
            shard_info(0), sequence=self.writes, log_id=self.log_id, passages=self.passages
        )
        return {0: OwnedShard((("a", info),))}

    async def check_settled(self) -> None:
        return None

    async def wait_until_closed(self, since: int, deadline: Deadline) -> dict[int, OwnedShard]:
        return await self.shards()

    @contextlib.asynccontextmanager
    async def open_shard(self, node: str, shard: int) -> AsyncIterator["FakeNodes"]:
        yield self

    shard = 0

    async def read_log(self, after: int) -> LogBatch:
        await self.may_read.wait()
        writes = [logged(n + 1, f"id-{n}", None) for n in range(after, self.writes)]
        return LogBatch(self.log_id, writes, self.writes)


class FakeWriter:
    """Stores nothing, and reports the log of the copy."""

    def __init__(self, on_log: Callable[[], None]) -> None:
        self._on_log = on_log

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        return None

    async def write(self, writes: Sequence[Write]) -> None:
        self._on_log()


class FakeEncoder:
    """Encodes nothing, because deletions have no passages."""

    fingerprint = "encoding"

    def encode(self, puts: Sequence[Put]) -> list[Write]:
        assert not puts
        return []


class Listener(NoProgress):
    """Keeps what is said and the steps that are reported."""

    def __init__(self) -> None:
        self.said: list[str] = []
        self.steps = 0

    def say(self, text: str) -> None:
        self.said.append(text)

    def advance(self, steps: int) -> None:
        self.steps += steps


class Copying:
    """An index and its copy, and the process that copies."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.file, self.listener = CatalogFile(str(path / "indexes.json")), Listener()
        self.file.change(lambda _: FILLED)
        self.old, self.new = FakeNodes("old", OLD), FakeNodes("new", NEW)
        begin = CopyRun.begin

        async def begun(*arguments: Any) -> CopyRun:
            run = await begin(*arguments)
            run.source, run.target = cast("IndexNodes", self.old), cast("IndexNodes", self.new)
            writer = FakeWriter(lambda: run._check_own_log(0, self.new.log_id))
            run._writer = cast("Any", writer)

            async def open_writer() -> FakeWriter:
                return writer

            monkeypatch.setattr(run, "open", open_writer)
            return run

        monkeypatch.setattr(CopyRun, "begin", begun)
        monkeypatch.setattr(replacing, "_LAST_SECONDS", LONG)
        self.copier = IndexCopier(
            self.file,
            "new",
            encoder=cast("CopyEncoder", FakeEncoder()),
            listener=self.listener,
            sleep=self._stop,
        )

    @property
    def catalog(self) -> Catalog:
        catalog = self.file.read()
        assert catalog is not None
        return catalog

    @property
    def is_held(self) -> bool:
        return index_writes(self.catalog, "old").closed_since > 0

    async def _stop(self, _seconds: float) -> None:
        raise EndedError(self.listener.said[-1])


class EndedError(Exception):
    """The copier would try again."""


@pytest.fixture
def copying(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Copying:
    return Copying(tmp_path, monkeypatch)


async def test_an_index_is_replaced_by_a_complete_copy(copying: Copying) -> None:
    copying.old.writes = 3
    await copying.copier.replace_source()
    assert copying.catalog.resolve("docs").name == "new"
    back = copying.catalog.copies["old"]
    assert (back.logs.source, back.logs.own) == ({0: "log of new"}, {0: "log of old"})
    assert copying.listener.steps == 3


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        (lambda each: vars(each.old).update(log_id="other"), "shard 0 of old was restored"),
        (lambda each: vars(each.new).update(log_id="other"), "shard 0 of new was restored"),
        (lambda each: vars(each.new).update(passages=4), "new has 4 passages, but old has 5"),
    ],
)
async def test_a_copy_that_may_lack_passages_does_not_replace_its_source(
    copying: Copying, change: Callable[[Copying], None], problem: str
) -> None:
    """A node whose disk was lost restores its shards from a snapshot, which is older."""
    copying.old.writes = 1
    await copying.copier.catch_up()
    change(copying)
    with pytest.raises(ArtefactError, match=problem):
        await copying.copier.replace_source()
    assert not copying.is_held
    assert copying.catalog.resolve("docs").name == "old"


async def test_a_source_whose_last_writes_take_too_long_takes_writes_again(
    copying: Copying, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replacing, "_LAST_SECONDS", 0.01)
    monkeypatch.setattr(replacing, "reach", lambda point: _write_late(copying, point))
    with pytest.raises(EndedError, match="the last writes were not copied in 0"):
        await copying.copier.replace_source()
    assert not copying.is_held


@pytest.mark.parametrize(
    ("holds", "pauses"), [(False, [2, 4, 8, 10, 10, 10]), (True, [2, 4, 8, 16, 32, 60])]
)
async def test_work_that_fails_is_repeated_less_often_if_it_held_writes_back(
    copying: Copying, monkeypatch: pytest.MonkeyPatch, holds: bool, pauses: list[int]
) -> None:
    slept: list[float] = []

    async def pause(seconds: float) -> None:
        slept.append(seconds)
        if len(slept) == len(pauses):
            raise EndedError

    async def refuse(*_: object) -> CopyRun:
        raise UnavailableError("node a is gone")

    monkeypatch.setattr(copying.copier, "_sleep", pause)
    if holds:
        monkeypatch.setattr(copying.old, "wait_until_closed", refuse)
    else:
        monkeypatch.setattr(CopyRun, "begin", refuse)
    with pytest.raises(EndedError):
        await copying.copier.replace_source()
    assert slept == pauses
    assert not copying.is_held


async def test_after_ctrl_c_the_source_takes_writes_again(
    copying: Copying, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replacing, "reach", lambda point: _write_late(copying, point))
    switching = asyncio.create_task(copying.copier.replace_source())
    await happens(lambda: copying.is_held)
    switching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await switching
    assert not copying.is_held


async def test_ctrl_c_ends_the_command_although_the_catalog_cannot_be_written(
    copying: Copying, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_change: object) -> Catalog:
        raise UnavailableError("no network")

    monkeypatch.setattr(replacing, "reach", lambda point: _write_late(copying, point))
    switching = asyncio.create_task(copying.copier.replace_source())
    await happens(lambda: copying.is_held)
    monkeypatch.setattr(copying.file, "change", refuse)
    switching.cancel()
    with pytest.raises(asyncio.CancelledError):
        await switching
    assert copying.listener.said == [
        "old may take no writes (no network): run this command again, or point an alias to old"
    ]


def _write_late(copying: Copying, point: str) -> None:
    """Adds a write that cannot be read, once the source is held."""
    if point == "copy.held":
        copying.old.writes += 1
        copying.old.may_read.clear()


async def test_a_rebuild_waits_until_all_nodes_reply_and_tells_why(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """An index may have just been created, and a node may be restarting or hang."""
    replies: list[WinnowError | dict[int, OwnedShard]] = [
        UnavailableError("node a does not serve shard 0 yet"),
        UnavailableError("node a is gone"),
        UnavailableError("node a is gone"),
        DeadlineExceededError("node a does not reply in time"),
        await FakeNodes("old", OLD).shards(),
    ]

    async def shards(_nodes: IndexNodes) -> dict[int, OwnedShard]:
        reply = replies.pop(0)
        if isinstance(reply, WinnowError):
            raise reply
        return reply

    monkeypatch.setattr(IndexNodes, "shards", shards)
    nodes = IndexNodes("old", OLD, {}, copy="new", sleep=lambda _: turn())
    told: list[str] = []
    assert not await nodes.has_tenants(told.append)
    assert told == [
        "node a does not serve shard 0 yet; trying again",
        "node a is gone; trying again",
        "node a does not reply in time; trying again",
    ]


class BlockedProgress(NoProgress):
    """Blocks the thread that copies files."""

    def __init__(self) -> None:
        self.is_blocked, self._may_go_on = threading.Event(), threading.Event()

    def start(self, stage: str, total: int | None, done: int = 0) -> None:
        self.is_blocked.set()
        self._may_go_on.wait()

    def go_on(self) -> None:
        self._may_go_on.set()


async def test_a_cancelled_copy_ends_once_nothing_is_written_any_more(tmp_path: Path) -> None:
    """The directory is removed afterwards, which would fail otherwise."""
    target, progress = tmp_path / "target", BlockedProgress()
    target.mkdir()
    async with holding(built(tmp_path, {"a": "one two"})) as owner:
        nodes = moves("copy", old=owner.address)
        async with nodes.open_shard("old", INDEX, 0) as peer:
            opened = await peer.open_copy()
            fetching = asyncio.create_task(ShardContents(target).fetch(opened, "old", progress))
            await happens(progress.is_blocked.is_set)
            fetching.cancel()
            for _ in range(10):
                await turn()
            assert not fetching.done()
            progress.go_on()
            with pytest.raises(asyncio.CancelledError):
                await fetching


async def test_a_full_temporary_directory_is_named(tmp_path: Path) -> None:
    (tmp_path / "target" / "shard").mkdir(parents=True)  # stands for a directory without room
    async with holding(built(tmp_path, {"a": "one two"})) as owner:
        nodes = moves("copy", old=owner.address)
        async with nodes.open_shard("old", INDEX, 0) as peer:
            contents, opened = ShardContents(tmp_path / "target"), await peer.open_copy()
            with pytest.raises(ArtefactError, match="or set TMPDIR to another directory"):
                await contents.fetch(opened, "old", NoProgress())


async def test_a_copy_that_the_node_has_closed_is_opened_again(tmp_path: Path) -> None:
    """After a restart of the node, or a pause of the command, the work is repeated."""
    (tmp_path / "target").mkdir()
    async with holding(built(tmp_path, {"a": "one two"})) as owner:
        nodes = moves("copy", old=owner.address)
        async with nodes.open_shard("old", INDEX, 0) as peer:
            contents, opened = ShardContents(tmp_path / "target"), await peer.open_copy()
            await peer.open_copy()  # closes the first one
            with pytest.raises(UnavailableError, match="is not open any more"):
                await contents.fetch(opened, "old", NoProgress())
