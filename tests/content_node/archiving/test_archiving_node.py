"""A node that archives its shards, with real models."""

import gc
import weakref
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import structlog.testing
from archiving_index import DEPTH, archive_now, built_index, question_of
from assigned_nodes import Nodes
from fake_journal import FakeEnds, FakeJournal
from prometheus_client import CollectorRegistry
from tenacious import LATER, LONG, happens

from winnow.bundle import Bundle
from winnow.content_node.archiving import archives, journal_watch
from winnow.content_node.archiving.stub import read_stub
from winnow.content_node.composing import assigned_shards
from winnow.content_node.composing import shard as composing_shard
from winnow.content_node.composing.parts import open_node_parts
from winnow.content_node.composing.shards import RunningShards
from winnow.content_node.identity import DescribedShard, shard_info
from winnow.content_node.journal import composing as journal_composing
from winnow.content_node.journal.messages import JournalMessages
from winnow.content_node.merging import policy
from winnow.content_node.settings import NodeSettings
from winnow.content_node.shard.changes import FileChange
from winnow.content_node.startup_checks import shards_to_serve
from winnow.domain.index_copy import IndexWrites
from winnow.domain.listing import CountRequest, TenantListing
from winnow.domain.partition import halves_of
from winnow.domain.shard import ShardInfo
from winnow.domain.tenant import id_of_whole_tenant, stored_id
from winnow.domain.write import Outcome, Write
from winnow.errors import (
    IdentityError,
    PermissionDeniedError,
    RestoringError,
    UnavailableError,
)
from winnow.searcher import Retrieved
from winnow.telemetry.runtimes import RuntimeMetrics

pytestmark = pytest.mark.bundle


@pytest.fixture(autouse=True)
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Waits `LONG` for the journal; merges no deleted tenant and checks no files meanwhile."""
    monkeypatch.setattr(journal_composing, "_CATCH_UP_SECONDS", LONG)
    monkeypatch.setattr(policy, "_TENANT_SECONDS", LONG)
    monkeypatch.setattr(composing_shard, "_FILE_CHECK_INTERVAL", LONG)


@pytest.fixture
def index(bundle: Bundle, tmp_path: Path, recorder: Any) -> Path:
    """An index of one shard with three passages of two tenants."""
    return built_index(bundle, tmp_path, recorder)


@asynccontextmanager
async def node(
    index: Path, bundle: Bundle, registry: CollectorRegistry | None = None, **flags: Any
) -> AsyncIterator[RunningShards]:
    registry = registry or CollectorRegistry()
    settings = NodeSettings.load({"shards": index, "feed": True, **flags}, None, {})
    parts = open_node_parts(settings, bundle, registry, RuntimeMetrics(registry), shards=1)

    async def set_serving(serving: bool) -> None:
        assert serving

    running = RunningShards(shards_to_serve(settings), parts, registry, set_serving)
    try:
        await running.load()
        yield running
    finally:
        await running.close()
        parts.close()


def found(retrieved: Retrieved) -> list[Any]:
    return [(hit.passage_id, hit.row, hit.generation) for hit in retrieved.hits]


async def described(running: RunningShards) -> ShardInfo:
    report = await running.served.report(LATER)
    assert not report.faults
    return replace(report.infos[0], seconds_per_read=0.0, reads_in_hand=0)


async def test_an_archived_shard_takes_no_memory_is_described_and_answers_the_next_question(
    index: Path, bundle: Bundle, tmp_path: Path
) -> None:
    """Fronts poll it, and administrators list its tenants, without restoring it."""
    registry, asked = CollectorRegistry(), question_of("acme", bundle)
    url = str(tmp_path / "archive")
    async with node(index, bundle, registry, archive_url=url) as running:
        (shard,) = running.all
        before, info = await shard.served.retrieve(asked, DEPTH, LATER), await described(running)
        archive = shard._archive
        assert archive is not None
        assert archive.gate.opened is not None
        live = weakref.ref(archive.gate.opened.live)
        await happens(lambda: not shard.loading.is_running)  # its thread holds the shard
        gc.freeze()  # as a server does: what is not freed at once stays until another shard is closed
        try:
            assert await archive.archive()
            assert live() is None
        finally:
            gc.unfreeze()
        assert registry.get_sample_value("winnow_node_archived") == 1
        assert await described(running) == info
        page = await shard.served.passages.fetch(TenantListing(limit=1), LATER)
        assert ([each.name for each in page.tenants], page.complete) == (["acme"], False)
        count = await shard.served.passages.fetch(
            CountRequest(tenant="acme", with_bytes=True), LATER
        )
        assert (count.passages, count.content_bytes) == (2, 2 * len("Prizesacme won prize 0."))
        with pytest.raises(PermissionDeniedError):
            await shard.served.passages.fetch(CountRequest(), LATER)
        with pytest.raises(UnavailableError, match="the shard is archived"):
            await shard.merge()
        with pytest.raises(RestoringError):
            await shard.served.writing.writer.changes(LATER)
        assert read_stub(shard.directory) is not None
        assert found(await shard.served.retrieve(asked, DEPTH, LATER)) == found(before)
        assert await described(running) == info
        assert read_stub(shard.directory) is None
        assert registry.get_sample_value("winnow_node_archived") == 0
        assert registry.get_sample_value("winnow_node_restores_total", {"result": "done"}) == 1


async def test_a_write_restores_a_shard_and_is_stored_after_a_restart(
    index: Path, bundle: Bundle, tmp_path: Path
) -> None:
    """A node without an archive restores its shards when it starts, and says so before."""
    url = str(tmp_path / "archive")
    async with node(index, bundle, archive_url=url) as running:
        archive = running.all[0]._archive
        assert archive is not None
        assert await archive.archive()
    async with node(index, bundle, archive_url=url) as running:
        (shard,) = running.all
        assert (await described(running)).passages == 3
        archive = shard._archive
        assert archive is not None
        assert archive.gate.opened is None
        await shard.served.writing.writer.write([Write(id_of_whole_tenant("acme"))], LATER)
        count = await shard.served.passages.fetch(CountRequest(tenant="acme"), LATER)
        assert count.passages == 0
        assert not archive._is_due()  # the merge that removes the tenant comes first
        assert await archive.archive()
    with structlog.testing.capture_logs() as logged:
        async with node(index, bundle) as running:
            assert ((await described(running)).passages, running.all[0]._archive) == (1, None)
            assert read_stub(running.all[0].directory) is None
    directory = str(running.all[0].directory)
    (restored,) = [each for each in logged if "restored" in each["event"]]
    assert restored["directory"] == directory
    assert {
        "event": f"restoring archived shard {directory} from {url}",
        "log_level": "warning",
    } in (logged)


async def test_a_replica_is_restored_by_an_entry_of_its_journal_also_after_a_restart(
    index: Path, bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fronts see a replica that follows a journal, and its list of tenants has all deletions."""
    journal = FakeJournal()
    monkeypatch.setattr(journal_composing, "open_journal", lambda *_: journal)
    monkeypatch.setattr(archives, "open_journal_ends", lambda _: FakeEnds(journal))
    monkeypatch.setattr(journal_watch, "_INTERVAL", 0.01)
    flags: dict[str, Any] = {
        "archive_url": str(tmp_path / "archive"),
        "journal": "nats://127.0.0.1:4222",
    }
    async with node(index, bundle, **flags) as running:
        (shard,) = running.all
        writer = shard.served.writing.writer
        (first,) = await writer.write([Write(stored_id("acme", "none"))], LATER)
        archive = shard._archive
        assert archive is not None
        assert archive.gate.opened is not None
        live = weakref.ref(archive.gate.opened.live)
        await happens(lambda: not shard.loading.is_running)  # its thread holds the shard
        await archive_now(shard)
        assert live() is None
        info = await described(running)
        assert (info.journaled, info.sequence, info.log_id) == (True, first.sequence, journal.id)
        await journal.publish(journal.entries[-1].content, "other replica", LATER)
        await happens(lambda: archive.gate.opened is not None)
        await archive_now(shard)
    fingerprint = bundle.manifest.encoding_fingerprint
    messages = JournalMessages(info.index_id, 0, 0, fingerprint)
    (deletion,) = messages.encode([Write(id_of_whole_tenant("acme"))], journal.max_bytes)
    await journal.publish(deletion, "while the node is down", LATER)
    async with node(index, bundle, **flags) as running:
        (shard,) = running.all
        page = await shard.served.passages.fetch(TenantListing(limit=2), LATER)
        assert [each.name for each in page.tenants] == ["beta"]


async def test_an_archived_replica_that_the_node_refuses_is_not_restored_by_its_journal(
    bundle: Bundle, tmp_path: Path, recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It would be restored every ten seconds, and refused again."""
    index, journal = built_index(bundle, tmp_path, recorder, shards=2), FakeJournal()
    monkeypatch.setattr(journal_composing, "open_journal", lambda *_: journal)
    monkeypatch.setattr(archives, "open_journal_ends", lambda _: FakeEnds(journal))
    flags: dict[str, Any] = {
        "archive_url": str(tmp_path / "archive"),
        "journal": "nats://127.0.0.1:4222",
    }
    async with node(index, bundle, **flags) as running:
        refused, _ = running.all
        await archive_now(refused)

    def check(view: DescribedShard, bundle: Bundle) -> ShardInfo:
        if view.manifest.shard == refused.served.number:
            raise IdentityError("another bundle")
        return shard_info(view, bundle)

    monkeypatch.setattr(composing_shard, "shard_info", check)
    async with node(index, bundle, **flags) as running:
        archive = running.all[0]._archive
        assert archive is not None
        with pytest.raises(UnavailableError):
            archive.gate.begin_restore()
    assert read_stub(refused.directory) is not None


async def test_a_shard_whose_files_were_touched_is_served_again_once_it_is_archived(
    index: Path, bundle: Bundle, tmp_path: Path
) -> None:
    """No check of the restored files would report that they are unchanged."""
    asked = question_of("acme", bundle)
    async with node(index, bundle, archive_url=str(tmp_path / "archive")) as running:
        (shard,) = running.all
        shard._status._file_change = FileChange("a file was touched", readable=True)
        shard.served.withdraw("a file was touched")
        assert (await running.served.report(LATER)).faults
        archive = shard._archive
        assert archive is not None
        assert await archive.archive()
        assert (await described(running)).passages == 3
        await shard.served.retrieve(asked, DEPTH, LATER)
        assert (await described(running)).passages == 3


async def test_a_shard_is_restored_before_its_index_is_copied_and_not_archived_meanwhile(
    index: Path, bundle: Bundle, tmp_path: Path
) -> None:
    """A rebuild follows the log, and waits until each shard reports that it takes no writes."""
    async with node(index, bundle, archive_url=str(tmp_path / "archive")) as running:
        (shard,) = running.all
        archive = shard._archive
        assert archive is not None
        for writes in (IndexWrites(copied={"new": {0: 0}}), IndexWrites(closed_since=7)):
            assert await archive.archive()
            assert (await described(running)).closed_since == 0
            await shard.apply_copies(writes)
            await happens(lambda: archive.gate.opened is not None)
            assert (await described(running)).closed_since == writes.closed_since
            assert not await archive.archive()
            await shard.apply_copies(IndexWrites())
        assert await archive.archive()


async def test_a_copy_of_an_index_is_written_by_its_run_although_its_shard_was_archived(
    index: Path, bundle: Bundle, tmp_path: Path
) -> None:
    async with node(index, bundle, archive_url=str(tmp_path / "archive")) as running:
        (shard,) = running.all
        archive, copied = shard._archive, shard.served.writing.copied_writer
        assert archive is not None
        assert copied is not None
        assert await archive.archive()
        await shard.apply_copies(IndexWrites(closed_since=7, source="old"))
        (written,) = await copied(7).write([Write(id_of_whole_tenant("acme"))], LATER)
        assert written.outcome is Outcome.STORED
        count = await shard.served.passages.fetch(CountRequest(tenant="acme"), LATER)
        assert count.passages == 0


async def test_an_archived_shard_moves_once_it_is_restored_and_its_archive_is_removed(
    index: Path, bundle: Bundle, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both nodes have folders of their own, and the report counts moves while it is archived."""
    archive, asked = tmp_path / "archive", question_of("acme", bundle)
    flags: dict[str, Any] = {"feed": True, "archive_url": str(archive)}
    monkeypatch.setattr(assigned_shards, "_RETRY_AFTER", 0.1)
    async with AsyncExitStack() as stack:
        nodes = Nodes(tmp_path, index, bundle, stack, shards=1)
        a, b = await nodes.start("a", **flags), await nodes.start("b", **flags)
        nodes.assign({}, range(1))
        await a.serves(0)
        (shard,) = a.shards.all
        await archive_now(shard)
        await a.serves(0)
        nodes.assign({0: "b"}, range(1))
        await b.serves(0)
        await a.serves()
        await happens(lambda: not b.shards._changing and not shard.directory.exists())
        assert not [each for each in archive.rglob("*") if each.is_file()]
        (moved,) = b.shards.all
        await archive_now(moved)
        (info,) = (await b.report()).infos
        assert (info.moves, info.passages) == (1, 3)
        assert len((await moved.served.retrieve(asked, DEPTH, LATER)).hits) == 2


async def test_an_archived_shard_is_split_once_it_is_restored(
    index: Path, bundle: Bundle, tmp_path: Path
) -> None:
    async with AsyncExitStack() as stack:
        nodes = Nodes(tmp_path, index, bundle, stack, shards=1)
        a = await nodes.start("a", feed=True, archive_url=str(tmp_path / "archive"))
        nodes.assign({}, range(1))
        await a.serves(0)
        (shard,) = a.shards.all
        await archive_now(shard)
        nodes.assign({}, halves_of(0, 1))
        await a.serves(*halves_of(0, 1))
        assert sum(info.passages for info in (await a.report()).infos) == 3


async def test_other_shards_move_although_an_archived_one_cannot_be_restored(
    bundle: Bundle, tmp_path: Path, recorder: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One damaged archive must not keep a node from following its assignment."""
    index = built_index(bundle, tmp_path, recorder, shards=2)
    archive = tmp_path / "archive"
    monkeypatch.setattr(assigned_shards, "_RETRY_AFTER", 0.1)
    monkeypatch.setattr(composing_shard, "CHANGE_PAUSE", 0.1)
    async with AsyncExitStack() as stack:
        nodes = Nodes(tmp_path, index, bundle, stack, shards=2)
        a = await nodes.start("a", feed=True, archive_url=str(archive))
        b = await nodes.start("b", feed=True)
        nodes.assign({}, range(2))
        await a.serves(0, 1)
        shard = next(each for each in a.shards.all if each.served.number == 0)
        await archive_now(shard)
        away = archive.rename(tmp_path / "away")
        nodes.assign({0: "b", 1: "b"}, range(2))
        await b.serves(1)
        await a.serves(0)
        away.rename(archive)
        await b.serves(0, 1)
        await a.serves()


async def test_a_node_tells_once_that_an_index_is_never_archived(
    bundle: Bundle, tmp_path: Path, recorder: Any
) -> None:
    index = built_index(bundle, tmp_path, recorder, shards=2, tenants=False)
    with structlog.testing.capture_logs() as logged:
        async with node(index, bundle, archive_url=str(tmp_path / "archive")):
            pass
    told = [each for each in logged if "never archived" in each["event"]]
    assert [each["log_level"] for each in told] == ["warning"]
