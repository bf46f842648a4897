"""Real shards that follow a journal in a real NATS server; new replicas come from snapshots."""

import asyncio
import random
import shutil
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path

import pytest
import structlog.testing
from conftest import Recorder
from fakes import shard_info
from live_writes import delete, put
from nats_server import NatsServer, needs_nats
from prometheus_client import CollectorRegistry
from tenacious import LONG, available, happens

from winnow.content_node.journal.composing import ShardWritePath
from winnow.content_node.journal.metrics import JournalMetrics
from winnow.content_node.live.limits import WriteLimits
from winnow.content_node.live.loading import open_live
from winnow.content_node.live.log_entry import LoggedWrite
from winnow.content_node.live.reading import log_path, read_writes
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.metrics import WriteMetrics
from winnow.content_node.shard import open_shard
from winnow.content_node.shard.changes import FileChange
from winnow.content_node.snapshots.restoring import restore_if_missing
from winnow.content_node.snapshots.taking import take_snapshot
from winnow.deadline import Deadline
from winnow.domain.shard import shard_name
from winnow.domain.write import Write
from winnow.errors import NotWritableError

pytestmark = needs_nats
GOLDEN = Path(__file__).parent.parent.parent / "golden" / "shard-format-3"
LIMITS = WriteLimits(shard=0, shards=1, dimension=8, vocabulary=1_000, max_unmerged=100_000)
INFO = shard_info(shards=1, passages=3, dimension=8)


class Replica:
    """A shard on disk, served and following."""

    def __init__(self, directory: Path, live: LiveShard, fed: ShardWritePath) -> None:
        self.directory, self.live = directory, live
        self.changes: list[FileChange | None] = []
        self.writer = fed.start(self.tell)

    @property
    def log(self) -> list[LoggedWrite]:
        return list(read_writes(log_path(self.directory), 0))

    async def tell(self, change: FileChange | None) -> None:
        self.changes.append(change)

    async def write(self, *writes: Write) -> int:
        deadline = Deadline.after(LONG)
        return (await available(lambda: self.writer.write(writes, deadline), LONG))[-1].sequence


@asynccontextmanager
async def served(directory: Path, url: str) -> AsyncIterator[Replica]:
    live = open_live(
        directory,
        lambda _: open_shard(directory, ef=64),
        lambda _: LIMITS,
        WriteMetrics(CollectorRegistry()),
        feeding=True,
    )
    fed = ShardWritePath(
        journal=url,
        shard=live,
        info=INFO,
        encoding_fingerprint="encoding",
        metrics=JournalMetrics(CollectorRegistry()),
    )
    try:
        yield Replica(directory, live, fed)
    finally:
        await fed.close()


@pytest.fixture
def built(tmp_path: Path) -> Path:
    return Path(shutil.copytree(GOLDEN, tmp_path / "built"))


def replica_of(directory: Path, name: str) -> Path:
    """A new one, from a snapshot of one that is served."""
    place = str(directory.with_name("snapshots"))
    take_snapshot(directory, place, Recorder(), lambda: datetime.now(UTC))
    restore_if_missing(f"{place}/{shard_name(0, 1)}", directory.with_name(name), Recorder())
    return directory.with_name(name)


def some(random: random.Random, count: int) -> list[Write]:
    """Puts and deletions of few ids, with and without versions."""
    writes = []
    for _ in range(count):
        identifier = f"id-{random.randrange(12)}"
        version = random.choice([None, None, random.randrange(5)])
        if random.random() < 0.3:
            writes.append(delete(identifier, version))
        else:
            writes.append(put(identifier, f"text {random.randrange(9)}", version))
    return writes


async def test_a_new_replica_comes_from_a_snapshot_and_catches_up(
    nats_server: NatsServer, built: Path
) -> None:
    chance = random.Random(1)
    async with served(built, nats_server.url) as one:
        for _ in range(10):
            await one.write(*some(chance, 7))
        copied = await asyncio.to_thread(replica_of, built, "other")
        for _ in range(10):
            last = await one.write(*some(chance, 7))
        async with served(copied, nats_server.url) as other:
            await happens(lambda: other.live.sequence == last, LONG)
            assert other.log == one.log
            assert other.live.log_id == one.live.log_id
            assert other.live.view.passages == one.live.view.passages
            assert await other.write(*some(chance, 3)) >= last


async def test_replicas_are_equal_after_faults_of_the_server_and_of_replicas(
    nats_server: NatsServer, built: Path, tmp_path: Path
) -> None:
    chance = random.Random(2)
    copied = Path(shutil.copytree(built, tmp_path / "other"))
    async with served(built, nats_server.url) as one:
        for kill in (False, True, False, True):
            async with served(copied, nats_server.url) as other:
                both = [one.write(*some(chance, 5)) for _ in range(10)]
                both += [other.write(*some(chance, 5)) for _ in range(10)]
                writing = asyncio.gather(*both)
                if kill:
                    nats_server.stop(signal.SIGKILL)
                    nats_server.start()
                last = max(await writing)
            await happens(lambda last=last: one.live.sequence >= last, LONG)  # type: ignore[misc]
            await one.write(*some(chance, 5))  # while the other one is away
        async with served(copied, nats_server.url) as other:
            await happens(lambda: other.live.journal_position == one.live.journal_position, LONG)
            # the log has an entry before the view
            await happens(lambda: other.live.sequence == one.live.sequence, LONG)
            assert other.log == one.log
            assert other.live.view.passages == one.live.view.passages
            assert not one.changes
            assert not other.changes


async def test_a_replica_whose_journal_was_lost_says_so_and_takes_no_more(
    nats_server: NatsServer, built: Path, tmp_path: Path
) -> None:
    """It names the way to keep its writes. A known error is logged without a traceback."""
    async with served(built, nats_server.url) as one:
        await one.write(put("a", "text"))
    nats_server.stop()
    shutil.rmtree(tmp_path / "nats" / "store")
    nats_server.start()
    with structlog.testing.capture_logs() as logged:
        async with served(built, nats_server.url) as one:
            await happens(lambda: bool(one.changes), LONG)
            (change,) = one.changes
            assert change is not None
            assert change.readable
            assert "is not the journal that this shard has followed" in change.reason
            assert "winnow index build --passages INDEX" in change.reason
            with pytest.raises(NotWritableError, match="no longer follows its journal"):
                await one.write(put("b", "text"))
            assert one.live.view.passages == 3
    (line,) = [each for each in logged if each["log_level"] == "error"]
    assert line["event"] == "following the journal stopped"
    assert not line.get("exc_info")
