"""A node that follows a catalog, and archives the shards of its indexes."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import copytree
from typing import Any

import pytest
from archiving_index import DEPTH, archive_now, built_index, question_of
from assigned_nodes import briefly
from prometheus_client import CollectorRegistry
from tenacious import LATER, LONG, happens

from winnow.bundle import Bundle
from winnow.catalog import CatalogFile
from winnow.content_node.archiving import files
from winnow.content_node.archiving.stub import read_stub
from winnow.content_node.composing import assigned_shards, node_indexes
from winnow.content_node.composing.catalog import open_node_indexes
from winnow.content_node.composing.node_indexes import NodeIndexes, index_directory
from winnow.content_node.composing.shard import RunningShard
from winnow.content_node.merging import policy
from winnow.content_node.settings import NodeSettings
from winnow.content_node.shard.manifest import read_index_manifest
from winnow.domain.catalog import Catalog, CatalogIndex
from winnow.domain.listing import CountRequest
from winnow.domain.tenant import id_of_whole_tenant
from winnow.domain.write import Write
from winnow.security.peers import PLAIN_TEXT
from winnow.telemetry.runtimes import RuntimeMetrics

pytestmark = pytest.mark.bundle


@dataclass
class CatalogNode:
    """A node with the index `docs`, which has one shard."""

    indexes: NodeIndexes
    catalog: CatalogFile
    registry: CollectorRegistry
    directory: Path
    """The directory of the index."""
    archive: Path

    @property
    def shard(self) -> RunningShard:
        (shard,) = self.indexes.all
        return shard

    @property
    def is_closed(self) -> bool:
        return not self.indexes.all and not self.indexes._changing

    @property
    def is_open(self) -> bool:
        """Whether the index is served, with its shard on this disk or in the archive."""
        return any(each.served.index_id and not each.served.fault for each in self.indexes.all)

    def change(self, change: Callable[[Catalog], Catalog]) -> None:
        self.catalog.change(lambda before: change(before or Catalog()))

    async def drop(self, seconds: float = 3_600.0) -> None:
        """Drops the index, and waits until the node has closed it."""
        self.change(lambda known: known.with_dropped("docs", delete_at=time.time() + seconds))
        await happens(lambda: self.is_closed)

    async def undo_drop(self) -> None:
        """Takes the index back, and waits until the node serves it."""
        self.change(lambda known: known.with_restored("docs", time.time()))
        await happens(lambda: self.is_open)

    def archived(self, index: str = "docs") -> float | None:
        return self.registry.get_sample_value(
            "winnow_node_archived", {"index": index, "shard": "0"}
        )

    def stored(self) -> list[Path]:
        return [each for each in self.archive.rglob("*") if each.is_file()]


@asynccontextmanager
async def catalog_node(root: Path, index: Path, bundle: Bundle) -> AsyncIterator[CatalogNode]:
    manifest, registry = read_index_manifest(index), CollectorRegistry()
    directory = index_directory(root / "a", manifest.index_id)
    copytree(index / "shard-00000-of-00001", directory / "shard-00000-of-00001")
    catalog = CatalogFile(str(root / "indexes.json"))
    entry = CatalogIndex(index_id=manifest.index_id, shards=1, holders={0: ("a",)})
    catalog.change(lambda _: Catalog().with_index("docs", entry, {"a": "a:9000"}))
    flags: dict[str, Any] = {"indexes": str(root / "indexes.json"), "name": "a", "data": root / "a"}
    flags |= {"feed": True, "archive_url": str(root / "archive")}

    async def set_serving(_: bool) -> None:
        """Has no health service."""

    indexes, parts = open_node_indexes(
        NodeSettings.load(flags, None, {}),
        bundle,
        registry,
        runtimes=RuntimeMetrics(registry),
        set_serving=set_serving,
        peers=PLAIN_TEXT,
        sleep=briefly,
    )
    try:
        await indexes.load()
        yield CatalogNode(indexes, catalog, registry, directory, root / "archive")
    finally:
        indexes.start_leaving()
        await indexes.close()
        parts.close()


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tries again at once; merges no deleted tenant for `LONG` seconds."""
    monkeypatch.setattr(node_indexes, "_LINGER", 0.0)
    monkeypatch.setattr(assigned_shards, "_RETRY_AFTER", 0.1)
    monkeypatch.setattr(policy, "_TENANT_SECONDS", LONG)  # no merge while a shard is archived


class BlockedStep:
    """A step of archiving or restoring that waits, in its thread, until `go_on` is set."""

    def __init__(self, point: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self._point = point
        self.begun, self.go_on = threading.Event(), threading.Event()
        monkeypatch.setattr(files, "reach", self._reach)

    def _reach(self, point: str) -> None:
        if point == self._point and not self.begun.is_set():
            self.begun.set()
            assert self.go_on.wait(LONG)


async def test_an_archived_index_is_renamed_dropped_taken_back_and_deleted(
    bundle: Bundle, tmp_path: Path, recorder: Any
) -> None:
    """Nothing restores its shard but calls. Its archive is deleted with the index."""
    index = built_index(bundle, tmp_path, recorder)
    async with catalog_node(tmp_path, index, bundle) as node:
        await archive_now(node.shard)
        directory = node.shard.directory
        node.change(lambda known: known.with_renamed("docs", "papers").without_alias("docs"))
        node.change(lambda known: known.with_alias("texts", "papers"))
        await happens(lambda: node.archived("papers") == 1)
        assert node.archived("docs") is None
        node.change(lambda known: known.without_alias("texts").with_renamed("papers", "docs"))
        node.change(lambda known: known.without_alias("papers"))
        await happens(lambda: node.archived("docs") == 1)
        await node.drop()
        stub, stored = read_stub(directory), node.stored()
        assert stub is not None
        assert stored
        await node.undo_drop()
        assert (read_stub(directory), node.stored(), node.archived()) == (stub, stored, 1)
        served = node.shard.served
        assert len((await served.retrieve(question_of("acme", bundle), DEPTH, LATER)).hits) == 2
        await archive_now(node.shard)
        await served.writing.writer.write([Write(id_of_whole_tenant("acme"))], LATER)
        assert (await served.passages.fetch(CountRequest(tenant="acme"), LATER)).passages == 0
        await archive_now(node.shard)
        await node.drop(0.0)
        await happens(lambda: not directory.exists())
        assert not node.stored()


@pytest.mark.parametrize("point", ["archive.uploaded", "archive.stubbed", "restore.pulled"])
async def test_an_index_is_dropped_and_taken_back_while_its_shard_is_archived_or_restored(
    bundle: Bundle, tmp_path: Path, recorder: Any, point: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The thread of the step goes on while the index is closed and opened again."""
    index = built_index(bundle, tmp_path, recorder)
    async with catalog_node(tmp_path, index, bundle) as node:
        shard = node.shard
        archive = shard._archive
        assert archive is not None
        if point.startswith("restore"):
            await archive_now(shard)
            step = BlockedStep(point, monkeypatch)
            archive.gate.begin_restore()
        else:
            step = BlockedStep(point, monkeypatch)
            shard._tasks.append(asyncio.create_task(archive.archive()))  # type: ignore[arg-type]
        await happens(step.begun.is_set)
        node.change(lambda known: known.with_dropped("docs", delete_at=time.time() + 3_600))
        await happens(lambda: shard not in node.indexes.all)
        step.go_on.set()
        await happens(lambda: node.is_closed)
        await node.undo_drop()
        served = node.shard.served
        assert len((await served.retrieve(question_of("acme", bundle), DEPTH, LATER)).hits) == 2
        await node.drop(0.0)
        await happens(lambda: not node.directory.exists())
        await happens(lambda: not node.stored())
