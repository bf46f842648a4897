"""A node opens, closes and deletes indexes as the catalog says."""

import asyncio
import errno
import threading
from pathlib import Path
from typing import cast

import pytest
import structlog.testing
from fakes import joint_retrieval
from manual_clock import ManualClock
from tenacious import happens

from winnow.content_node.archiving import removing
from winnow.content_node.archiving.folder import FOLDER_FILE
from winnow.content_node.composing import node_indexes
from winnow.content_node.composing.assigned_shards import AssignedShards
from winnow.content_node.composing.node_indexes import (
    CatalogAssignment,
    NodeIndexes,
    index_directory,
)
from winnow.content_node.merging.names import LIVE
from winnow.content_node.repeated_warnings import RepeatedWarnings
from winnow.content_node.served_indexes import ServedIndexes
from winnow.content_node.served_shards import ServedShards
from winnow.content_node.settings import NodeSettings
from winnow.domain.catalog import Catalog, CatalogIndex
from winnow.domain.copying import with_copy, with_hold
from winnow.domain.index_copy import IndexWrites
from winnow.domain.shard import shard_name
from winnow.errors import UnavailableError

BOTH = (
    Catalog()
    .with_index("old", CatalogIndex(index_id="1", shards=1, holders={0: ("a",)}), {"a": "a:9000"})
    .with_index("new", CatalogIndex(index_id="2", shards=1, holders={0: ("a",)}), {"a": "a:9000"})
)


class FakeIndex:
    """An index of a node without shards."""

    def __init__(self, name: str, node: "FakeNode", assignment: CatalogAssignment) -> None:
        self.name, self._closed, self._failing = name, node.closed, node.failing
        self._cannot_load = node.cannot_load
        self._assignment = assignment
        self.writes = IndexWrites()
        """What its shards do with writes."""
        self.all = ()
        self.served = ServedShards(joint=joint_retrieval())

    async def load(self) -> None:
        """Loads nothing."""
        if self.name in self._cannot_load:
            raise UnavailableError("too many open files")

    async def apply_copies(self) -> None:
        self.writes = self._assignment.writes()

    def start_leaving(self) -> None:
        """Has no callers."""

    async def close(self) -> None:
        if self.name in self._failing:
            raise UnavailableError("the disk is gone")
        self._closed.append(self.name)


class FakeNode:
    """The indexes of a node, whose catalog and clock a test sets."""

    def __init__(self, data: Path, catalog: Catalog | Exception | None) -> None:
        self.catalog, self.data, self.clock = catalog, data, ManualClock()
        self.closed: list[str] = []
        self.forgotten: list[str] = []
        self.renamed: list[tuple[str, str]] = []
        self.opened: dict[str, FakeIndex] = {}
        self.failing: set[str] = set()
        """Indexes that cannot be closed."""
        self.cannot_load: set[str] = set()
        settings = NodeSettings.load({"indexes": "x.json", "name": "a", "data": data}, None, {})
        self.nothing, self.unopened = (ServedShards(joint=joint_retrieval()) for _ in range(2))
        served = ServedIndexes(self.nothing, self.nothing, self.unopened)
        self.indexes = NodeIndexes(settings, self, self, served=served, clock=self.clock)

    def read(self) -> Catalog | None:
        assert threading.current_thread().daemon, "hung storage would delay the exit"
        if isinstance(self.catalog, Exception):
            raise self.catalog
        return self.catalog

    async def open(
        self, name: str, index: CatalogIndex, assignment: CatalogAssignment
    ) -> AssignedShards:
        index_directory(self.data, index.index_id).mkdir(exist_ok=True)
        self.opened[name] = FakeIndex(name, self, assignment)
        return cast("AssignedShards", self.opened[name])

    def rename(self, index_id: str, name: str) -> None:
        self.renamed.append((index_id, name))

    async def forget(self, index_id: str) -> None:
        self.forgotten.append(index_id)

    async def update(self) -> None:
        """Reads the catalog, and waits until the node has done what it asks for."""
        await self.indexes.update()
        await happens(lambda: not self.indexes._changing)

    def serves(self, index_id: str) -> bool:
        served = self.indexes.indexes.of_index(index_id)
        return served is not self.nothing and served is not self.unopened


async def test_a_dropped_index_answers_until_all_fronts_know_of_it(tmp_path: Path) -> None:
    """Otherwise requests that began before the drop would fail, and be answered in part."""
    node = FakeNode(tmp_path, BOTH)
    await node.update()
    node.catalog = BOTH.with_dropped("old", delete_at=node.clock.now + 3_600)
    for seconds in (0.0, 20.0):
        node.clock.advance(seconds)
        await node.update()
        assert node.serves("1")
    node.catalog = node.catalog.with_restored("old", node.clock.now)
    await node.update()
    node.catalog = node.catalog.with_dropped("old", delete_at=node.clock.now + 3_600)
    await node.update()
    node.clock.advance(20.0)
    await node.update()
    assert node.serves("1")
    node.clock.advance(10.0)
    await node.update()
    assert (node.serves("1"), node.serves("2"), node.closed) == (False, True, ["old"])
    assert index_directory(tmp_path, "1").exists()


async def test_a_node_tells_nobody_that_it_lacks_an_index_that_it_has_not_opened(
    tmp_path: Path,
) -> None:
    """Otherwise other nodes would restore snapshots of its shards, beside these shards."""
    node = FakeNode(tmp_path, BOTH)
    assert node.indexes.indexes.of_index("1") is node.unopened
    (index_directory(tmp_path, "1") / shard_name(0, 1)).mkdir(parents=True)
    node.cannot_load.add("old")
    await node.indexes.load()
    assert node.indexes.indexes.of_index("1") is node.unopened
    assert node.indexes.indexes.of_index("3") is node.nothing
    assert node.serves("2")
    node.cannot_load.clear()
    node.clock.advance(10.0)
    await node.update()
    assert node.indexes.indexes.of_index("1") is node.opened["old"].served
    await node.indexes.close()


async def test_the_metrics_of_a_renamed_index_leave_its_old_name_to_another_index(
    tmp_path: Path,
) -> None:
    node = FakeNode(tmp_path, BOTH)
    await node.update()
    renamed = BOTH.with_renamed("old", "old-1").without_alias("old")
    another = CatalogIndex(index_id="3", shards=1, holders={0: ("a",)})
    node.catalog = renamed.with_index("old", another, {"a": "a:9000"})
    await node.update()
    await node.update()
    assert node.renamed == [("1", "old-1")]
    assert (node.serves("1"), node.serves("3"), node.closed) == (True, True, [])


async def test_an_index_without_grace_time_is_closed_and_deleted_at_once(tmp_path: Path) -> None:
    node = FakeNode(tmp_path, BOTH)
    await node.update()
    node.catalog = BOTH.with_dropped("old", delete_at=node.clock.now)
    await node.update()
    await node.update()
    assert not index_directory(tmp_path, "1").exists()
    assert index_directory(tmp_path, "2").exists()


async def test_all_indexes_are_closed_although_one_of_them_fails(tmp_path: Path) -> None:
    """The others still store their waiting writes."""
    node = FakeNode(tmp_path, BOTH)
    await node.update()
    node.failing.add("old")
    with pytest.raises(UnavailableError, match="the disk is gone"):
        await asyncio.wait_for(node.indexes.close(), 60)
    assert node.closed == ["new"]


@pytest.mark.parametrize("unreadable", [UnavailableError("no network"), None])
async def test_a_node_that_starts_without_the_catalog_serves_what_it_has(
    unreadable: Exception | None, tmp_path: Path
) -> None:
    """It deletes no index, which may have been restored since it read the catalog."""
    node = FakeNode(tmp_path, BOTH)
    await node.update()
    node.catalog = BOTH.with_dropped("old", delete_at=node.clock.now + 3_600)
    await node.update()
    again = FakeNode(tmp_path, unreadable)
    again.clock.advance(7_200)
    await again.indexes.load()
    assert (again.serves("1"), again.serves("2")) == (False, True)
    assert index_directory(tmp_path, "1").exists()
    again.catalog = node.catalog.with_restored("old", node.clock.now)
    await again.update()
    assert again.serves("1")
    await again.indexes.close()


async def test_an_index_that_cannot_be_closed_is_forgotten(tmp_path: Path) -> None:
    """Otherwise it would count for the health of the node."""
    node = FakeNode(tmp_path, BOTH)
    await node.update()
    node.failing.add("old")
    node.catalog = BOTH.with_dropped("old", delete_at=node.clock.now)
    await node.update()
    assert node.forgotten == ["1"]
    assert not node.serves("1")


async def test_shards_take_writes_as_the_catalog_says(tmp_path: Path) -> None:
    copy = CatalogIndex(index_id="3", shards=1, holders={0: ("a",)})
    copying = with_copy(BOTH, "copy", copy, "old")
    held = with_hold(copying, "copy", copying.version)
    node = FakeNode(tmp_path, held)
    await node.update()
    await node.update()
    found = {name: index.writes for name, index in node.opened.items()}
    assert found["old"] == IndexWrites(closed_since=held.version, copied={"copy": {}})
    assert found["copy"] == IndexWrites(closed_since=copying.version, source="old")
    assert found["new"] == IndexWrites()


async def test_a_node_starts_and_follows_the_catalog_while_the_deletion_of_an_index_hangs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The archive of its shards may not reply for minutes."""
    replies = threading.Event()
    monkeypatch.setattr(node_indexes, "try_remove_archives", lambda *_: replies.wait(60))
    index_directory(tmp_path, "1").mkdir()
    dropped = BOTH.with_dropped("old", delete_at=0.0)
    node = FakeNode(tmp_path, dropped)
    await node.indexes.load()
    await node.indexes.update()
    assert "1" in node.indexes._changing
    another = CatalogIndex(index_id="3", shards=1, holders={0: ("a",)})
    node.catalog = dropped.with_index("another", another, {"a": "a:9000"})
    await node.indexes.update()
    await happens(lambda: node.serves("3"))
    replies.set()
    await happens(lambda: not node.indexes._changing)
    assert not index_directory(tmp_path, "1").exists()
    await node.indexes.close()


async def test_an_index_is_deleted_once_the_archives_of_its_shards_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only the directories name their folders in the archive, which may be unreachable now."""
    node, asked = FakeNode(tmp_path, BOTH), list[tuple[list[Path], str]]()

    def remove(shards: list[Path], url: str, _: RepeatedWarnings) -> bool:
        asked.append((shards, url))
        return len(asked) > 1

    monkeypatch.setattr(node_indexes, "try_remove_archives", remove)
    await node.update()
    shard = index_directory(tmp_path, "1") / shard_name(0, 1)
    shard.mkdir()
    node.catalog = BOTH.with_dropped("old", delete_at=node.clock.now)
    await node.update()
    await node.update()
    assert (asked, shard.exists()) == ([([shard], "")], True)
    node.clock.advance(10.0)
    await node.update()
    assert (len(asked), shard.exists()) == (2, False)


async def test_an_archive_that_cannot_be_removed_is_logged_once_until_the_reason_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A node without the archive of its shards keeps their directories, and tries for ever."""
    monkeypatch.setattr(removing, "_is_archived", lambda _: True)
    record = index_directory(tmp_path, "1") / shard_name(0, 1) / LIVE / FOLDER_FILE
    record.mkdir(parents=True)  # so it cannot be read
    node = FakeNode(tmp_path, BOTH.with_dropped("old", delete_at=0.0))

    async def reasons() -> list[str]:
        with structlog.testing.capture_logs() as logs:
            await node.update()
        node.clock.advance(10.0)
        assert record.exists()
        return [line["reason"] for line in logs if "not removed" in line["event"]]

    (first,) = await reasons()
    assert "Is a directory" in first
    assert await reasons() == []
    monkeypatch.setattr(removing, "recorded_folder", _deny)
    (second,) = await reasons()
    assert "Permission denied" in second
    assert await reasons() == []


def _deny(_: Path) -> None:
    raise PermissionError(errno.EACCES, "Permission denied")
