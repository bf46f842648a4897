"""Replicas that archive their copies of a shard, each by itself, and follow one journal."""

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import structlog.testing
from fake_journal import FakeEnds, FakeJournal
from live_shards import built
from live_writes import put
from prometheus_client import CollectorRegistry
from tenacious import LATER, LONG, happens

from winnow.content_node.archiving import files
from winnow.content_node.archiving.archives import Archives
from winnow.content_node.archiving.files import commit_archive, restore_shard
from winnow.content_node.archiving.journal_watch import JournalWatch
from winnow.content_node.archiving.opened_shard import OpenedShard
from winnow.content_node.archiving.policy import ArchivePolicy
from winnow.content_node.archiving.shard import ArchivableShard
from winnow.content_node.archiving.stub import read_stub, write_stub
from winnow.content_node.journal import composing
from winnow.content_node.journal.composing import ShardWritePath
from winnow.content_node.journal.messages import JournalMessages
from winnow.content_node.journal.metrics import JournalMetrics
from winnow.content_node.live.limits import WriteLimits
from winnow.content_node.live.loading import open_live
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.merging.merge import merge
from winnow.content_node.merging.newest import open_newest
from winnow.content_node.metrics import ArchiveMetrics, WriteMetrics
from winnow.content_node.shard import open_shard
from winnow.content_node.shard.changes import FileChange
from winnow.domain.shard import ShardInfo
from winnow.domain.tenant import stored_id
from winnow.errors import ArtefactError, UnavailableError
from winnow.storage.pull import NoProgress

LIMITS = WriteLimits(
    shard=0, shards=1, dimension=8, vocabulary=1_000, max_unmerged=10_000, has_tenants=True
)
INFO = ShardInfo(
    shard=0,
    shards=1,
    index_id="index",
    passages=2,
    dimension=8,
    bundle_name="bundle",
    bundle_fingerprint="bundle",
)
MESSAGES = JournalMessages("index", 0, 0, "encoding")


class Killed(BaseException):
    """The end of the process."""


class Replica:
    """A node with one replica, its archive and its watch of the journal."""

    def __init__(self, directory: Path, journal: FakeJournal) -> None:
        self.directory, self.url = directory, str(directory.parent / "archive")
        self.journal = journal
        self.registry = CollectorRegistry()
        self._metrics = JournalMetrics(self.registry)
        self.changes: list[FileChange] = []
        self.catch_ups = 0
        """How often calls had to wait for entries of the journal."""
        self._look = asyncio.Event()
        self.watch = JournalWatch(lambda: FakeEnds(journal), sleep=self._wait_for_look)
        self.fed: ShardWritePath | None = None
        self.archive = ArchivableShard(
            directory,
            Archives(
                self.url,
                ArchivePolicy(60),
                asyncio.Semaphore(4),
                watch=self.watch,
            ),
            open_shard=self._open,
            close_shard=self._close,
            merge_lock=asyncio.Lock(),
            may_archive=lambda: self.fed is not None and self.fed.is_current,
            metrics=ArchiveMetrics(CollectorRegistry()),
            journal_metrics=lambda: self._metrics,
            now=lambda: datetime(2026, 1, 31, tzinfo=UTC),
        )

    async def _wait_for_look(self, _: float) -> None:
        await self._look.wait()
        self._look.clear()

    def look(self) -> None:
        """Makes the node compare its archived replica with the journal."""
        self._look.set()

    async def _open(self) -> OpenedShard:
        restore_shard(self.directory, self.url, NoProgress())
        live = open_live(
            self.directory,
            lambda trimmed: open_newest(
                self.directory, trimmed, partial(open_shard, ef=64), feeding=True
            ),
            lambda _: LIMITS,
            WriteMetrics(CollectorRegistry()),
            feeding=True,
        )
        self.fed = ShardWritePath(
            journal="fake",
            shard=live,
            info=INFO,
            encoding_fingerprint="encoding",
            metrics=self._metrics,
            on_entry=self.archive.gate.record_use,
        )
        parts: Any = live
        return OpenedShard(
            live=live,
            searcher=parts,
            writer=self.fed.start(self._tell),
            copied=parts,
            catch_up=self._catch_up,
            info=INFO,
        )

    async def _catch_up(self) -> None:
        assert self.fed is not None
        self.catch_ups += 1
        await self.fed.catch_up()

    async def _tell(self, change: FileChange) -> None:
        self.changes.append(change)

    async def _close(self) -> None:
        assert self.fed is not None
        fed, self.fed = self.fed, None
        await fed.close()

    async def close(self) -> None:
        await self.archive.close()
        assert not self.watch._ending  # no task outlives the node
        if self.fed is not None:
            await self._close()

    @property
    def live(self) -> LiveShard:
        assert self.archive.gate.opened is not None
        return self.archive.gate.opened.live

    @property
    def is_archived(self) -> bool:
        return self.archive.gate.opened is None

    async def archive_now(self) -> None:
        """Archives the replica, which must have all entries."""
        await happens(lambda: self.fed is not None and self.fed.is_current)
        assert await self.archive.archive()

    async def write(self, name: str) -> int:
        """Writes a passage to this replica; returns the number of the write."""
        async with self.archive.gate.enter(LATER) as opened:
            (written,) = await opened.writer.write([put(stored_id("acme", name))], LATER)
            return written.sequence

    async def has(self, sequence: int) -> bool:
        """Waits until the replica is open and has a write; returns whether it has just that."""
        await happens(lambda: not self.is_archived)
        await self.live.wait_for_write(sequence, LATER)
        return self.live.sequence == sequence

    async def has_entry(self, number: int) -> None:
        """Waits until the replica is open and serves an entry of the journal."""
        await happens(lambda: not self.is_archived)
        await happens(lambda: self.live.journal_position.partition(" ")[0] == str(number))
        # the log has it before the view
        await happens(lambda: self.live.sequence == self.live._log.last)

    def metric(self, name: str) -> float | None:
        return self.registry.get_sample_value(f"winnow_node_journal_{name}")


@pytest.fixture
def journal(monkeypatch: pytest.MonkeyPatch) -> FakeJournal:
    journal = FakeJournal()
    monkeypatch.setattr(composing, "open_journal", lambda *_: journal)
    monkeypatch.setattr(composing, "_CATCH_UP_SECONDS", LONG)
    return journal


Start = Callable[[str], Any]


@pytest.fixture
async def start(tmp_path: Path, journal: FakeJournal) -> AsyncIterator[Start]:
    """Starts the node of a replica; all replicas begin from the same built shard."""
    async with AsyncExitStack() as stack:

        async def start_node(name: str) -> Replica:
            directory = tmp_path / name / "shard-00000-of-00001"
            if not directory.exists():
                texts = {stored_id(tenant, "p"): f"text of {tenant}" for tenant in ("acme", "b")}
                directory.parent.mkdir()
                built(directory.parent, texts, tenants=True)
            replica = Replica(directory, journal)
            await replica.archive.begin()
            stack.push_async_callback(replica.close)
            return replica

        yield start_node


async def test_an_archived_replica_is_restored_by_an_entry_of_another_one(start: Start) -> None:
    """A merge of the other replica changes nothing about it, nor do looks without an entry."""
    a, b = await start("a"), await start("b")
    first = await a.write("first")
    assert await b.has(first)
    await a.archive_now()
    merged = merge(b.live.directory, b.directory, b.live.sequence)
    await b.live.swap(open_shard(Path(merged.directory), ef=64))
    a.look()
    await happens(lambda: a.metric("followed") == 1)
    assert a.is_archived
    assert a.archive.stub.sequence == first
    assert a.archive.stub.log_id == b.live.log_id
    second = await b.write("second")
    a.look()
    assert await a.has(second)
    assert a.archive.stub is None
    assert read_stub(a.directory) is None


async def test_a_write_to_archived_replicas_restores_one_and_then_the_other(start: Start) -> None:
    a, b = await start("a"), await start("b")
    first = await a.write("first")
    assert await b.has(first)
    await a.archive_now()
    await b.archive_now()
    second = await a.write("second")
    assert b.is_archived
    b.look()
    assert await b.has(second)
    await a.archive_now()
    assert await a.write("third") == second + 1


async def test_the_first_call_finds_the_entries_that_the_journal_had_before(start: Start) -> None:
    """It may come before the node looks at the journal; the list of tenants is not the old one.

    It waits for no entries if there are none.
    """
    a, b = await start("a"), await start("b")
    await a.archive_now()
    async with a.archive.gate.enter(LATER):
        assert a.catch_ups == 0
    await a.archive_now()
    assert await a.archive.knows_all_writes(LATER)
    sequence = await b.write("new")
    assert not await a.archive.knows_all_writes(LATER)
    async with a.archive.gate.enter(LATER) as opened:
        assert opened.live.sequence == sequence
    assert a.catch_ups == 1


async def test_a_replica_stays_archived_while_the_journal_is_unreachable(start: Start) -> None:
    """A question restores it all the same, and it is not archived before it has caught up."""
    a, b = await start("a"), await start("b")
    await a.archive_now()
    await a.journal.cut_off()
    a.look()
    await happens(lambda: a.metric("followed") == 0)
    assert a.is_archived
    assert await a.archive.knows_all_writes(LATER)  # as far as an open replica would know
    async with a.archive.gate.enter(LATER) as opened:
        assert opened.live.sequence == 0
    assert a.catch_ups == 1  # the follower may reach the journal sooner than the watch
    assert not await a.archive.archive()
    a.journal.join()
    await happens(lambda: b.fed.is_current)
    sequence = await b.write("new")
    assert await a.has(sequence)


@pytest.mark.parametrize("problem", ["recreated", "lost", "trimmed"])
async def test_a_replica_whose_journal_lost_entries_is_restored_and_reports_it(
    start: Start, problem: str
) -> None:
    """It is refused as a replica that was down for too long."""
    a, b = await start("a"), await start("b")
    assert await b.has(await a.write("first"))
    await a.archive_now()
    if problem == "recreated":
        a.journal.id += "1"
    elif problem == "lost":
        a.journal.entries.clear()
    else:
        await b.write("second")
        a.journal.removed = len(a.journal.entries)
    a.look()
    await happens(lambda: bool(a.changes))
    await happens(lambda: not a.is_archived)
    assert not await a.archive.archive()


@pytest.mark.parametrize("has_writes", [True, False])
async def test_an_entry_during_the_copy_keeps_the_shard(
    start: Start, monkeypatch: pytest.MonkeyPatch, has_writes: bool
) -> None:
    """Also an entry without writes: the copy may have another position than the stub."""
    a, b = await start("a"), await start("b")
    loop, since = asyncio.get_running_loop(), a.archive.gate.last_call
    before = a.live.journal_position

    async def add_entry() -> None:
        if has_writes:
            await b.write("new")
        else:
            await a.journal.publish(MESSAGES.empty_entry(), "key", LATER)
        await happens(lambda: a.live.journal_position != before)

    def reach(point: str) -> None:
        if point == "archive.uploaded":
            asyncio.run_coroutine_threadsafe(add_entry(), loop).result()

    await happens(lambda: a.fed.is_current)
    monkeypatch.setattr(files, "reach", reach)
    assert not await a.archive.archive()
    assert read_stub(a.directory) is None
    await happens(lambda: a.archive.gate.last_call > since)  # an entry is a use of the shard


async def test_an_entry_after_the_gate_has_closed_is_a_use_of_the_shard_and_no_failure(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    a, b = await start("a"), await start("b")
    live, close = a.live, a.archive._close_shard

    async def write_first() -> None:
        assert a.is_archived
        await live.wait_for_write(await b.write("new"), LATER)
        await close()

    for each in (a, b):  # so that neither creates its log later, and logs that
        await happens(lambda each=each: each.fed is not None and each.fed.is_current)  # type: ignore[misc]
    monkeypatch.setattr(a.archive, "_close_shard", write_first)
    with structlog.testing.capture_logs() as logged:
        assert not await a.archive.archive()
    assert [each["log_level"] for each in logged] == ["info"]
    assert await a.has(b.live.sequence)


async def test_replies_ask_the_journal_while_the_files_are_removed(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stub describes the replica already, and nothing follows the journal any more."""
    a, b = await start("a"), await start("b")
    loop, known = asyncio.get_running_loop(), []

    async def write_and_ask() -> None:
        await b.write("new")
        known.append(await a.archive.knows_all_writes(LATER))

    def reach(point: str) -> None:
        if point == "archive.stubbed":
            asyncio.run_coroutine_threadsafe(write_and_ask(), loop).result()

    monkeypatch.setattr(files, "reach", reach)
    await a.archive_now()
    assert known == [False]
    assert await a.has(b.live.sequence)  # without another look


@pytest.mark.parametrize(
    "point",
    ["archive.stubbed", "archive.removing", "restore.pulled", "restore.moving", "restore.renamed"],
)
async def test_a_kill_at_any_step_loses_no_entry(
    start: Start, monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    """The journal goes on while the node is down, so the replica is restored after its start."""
    a, b = await start("a"), await start("b")
    assert await b.has(await a.write("first"))
    await a.archive_now()
    stub = read_stub(a.directory)
    assert stub is not None
    await a.close()
    step: Callable[[], object] = partial(restore_shard, a.directory, a.url, NoProgress())
    if point.startswith("archive"):
        step()
        step = partial(commit_archive, a.directory, stub)

    def reach(reached: str) -> None:
        if reached == point:
            raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(files, "reach", reach)
        with pytest.raises(Killed):
            step()
    second = await b.write("second")
    restarted = await start("a")
    restarted.look()
    assert await restarted.has(second)


async def test_a_shard_that_was_archived_without_a_journal_is_restored_by_a_node_with_one(
    start: Start,
) -> None:
    """Its stub does not say which entries it has."""
    a = await start("a")
    await a.archive_now()
    stub = read_stub(a.directory)
    assert stub is not None
    await a.close()
    restore_shard(a.directory, a.url, NoProgress())
    with pytest.raises(ArtefactError, match="an entry of its journal that its archive lacks"):
        commit_archive(a.directory, stub.model_copy(update={"journal_position": None}))
    commit_archive(a.directory, stub).release()
    write_stub(a.directory, stub.model_copy(update={"journal_position": None}))
    assert not (await start("a")).is_archived


@pytest.mark.parametrize("seed", [7])
async def test_replicas_agree_after_any_order_of_writes_archiving_restarts_and_outages(
    start: Start, seed: int
) -> None:
    """Each acknowledged write is in both replicas, which are archived and restored by themselves."""
    choices = random.Random(seed)
    replicas = [await start("a"), await start("b")]
    journal, acknowledged = replicas[0].journal, {stored_id("acme", "first")}
    await replicas[0].write("first")
    for step in range(40):
        number = choices.randrange(2)
        replica = replicas[number]
        kind = choices.choice(["write", "write", "archive", "archive", "look", "restart", "outage"])
        if kind == "write":
            if not journal.reachable.is_set():
                continue  # it would wait for its deadline
            with suppress(UnavailableError):
                await replica.write(f"w{step}")
                acknowledged.add(stored_id("acme", f"w{step}"))
        elif kind == "archive":
            await replica.archive.archive()
        elif kind == "look":
            replica.look()
        elif kind == "restart":
            await replica.close()
            replicas[number] = await start("ab"[number])
        elif journal.reachable.is_set():
            await journal.cut_off()
        else:
            journal.join()
    journal.join()
    last = len(journal.entries)
    for replica in replicas:
        replica.look()
        if replica.is_archived and replica.archive.stub.journal_end.sequence == last:
            replica.archive.gate.begin_restore()
        await replica.has_entry(last)
    a, b = (each.live.view for each in replicas)
    assert (a.sequence, a.passages) == (b.sequence, b.passages)
    assert a.passages == 2 + len(acknowledged)
