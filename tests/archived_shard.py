"""A shard of two tenants and its archive, and kills at chosen steps."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from live_shards import built, opened
from live_writes import put
from prometheus_client import CollectorRegistry
from tenacious import turn

from winnow.content_node.archiving.archives import Archives
from winnow.content_node.archiving.files import (
    restore_shard,
)
from winnow.content_node.archiving.opened_shard import OpenedShard
from winnow.content_node.archiving.policy import ArchivePolicy
from winnow.content_node.archiving.shard import ArchivableShard
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.merging.merge import merge
from winnow.content_node.metrics import ArchiveMetrics
from winnow.content_node.shard import open_shard
from winnow.deadline import Deadline
from winnow.domain.tenant import stored_id
from winnow.storage.pull import NoProgress


class Killed(BaseException):
    """The process is killed here: no handler of errors runs."""


def killing(point: str) -> Callable[[str], None]:
    """Returns a `reach` that kills at a point; with `:N`, when it is reached for the N-th time."""
    name, _, times = point.partition(":")
    left = int(times or 1)

    def reach(reached: str) -> None:
        nonlocal left
        left -= reached == name
        if not left and reached == name:
            raise Killed

    return reach


def was_killed(work: Callable[[], object]) -> bool:
    try:
        work()
    except Killed:
        return True
    return False


def archives_at(url: str) -> Archives:
    return Archives(url, ArchivePolicy(60), asyncio.Semaphore(4))


def now() -> datetime:
    return datetime(2026, 1, 31, tzinfo=UTC)


def contents(shard: LiveShard) -> dict[str, str]:
    """The text of each passage that is served."""
    found = {}
    for placed in shard.view.segments:
        for row in placed.segment.rows_after("").tolist():
            if placed.live_rows is None or placed.live_rows[row]:
                stored = shard.view.load(placed.first_row + row)
                found[stored.passage.id] = stored.passage.text
    return found


@dataclass
class Archiving:
    """A shard of two tenants with a merged generation and later writes, and its archive."""

    directory: Path
    url: str
    passages: dict[str, str]
    log_id: str
    sequence: int

    def shard(self, opening: Callable[[], None] = lambda: None, **parts: Any) -> ArchivableShard:
        """The shard as a node has it; `opening` is called when it is opened."""

        async def open_again() -> OpenedShard:
            await turn()  # as a node, which opens shards in a thread
            opening()
            restore_shard(self.directory, self.url, NoProgress())
            self._live = live = opened(self.directory)
            parts: Any = live
            return OpenedShard(
                live=live, searcher=parts, writer=live, copied=parts, catch_up=turn, info=parts
            )

        async def close() -> None:
            await self._live.close()

        return ArchivableShard(
            self.directory,
            parts.pop("archives", None) or archives_at(self.url),
            open_shard=open_again,
            close_shard=close,
            merge_lock=asyncio.Lock(),
            metrics=ArchiveMetrics(CollectorRegistry()),
            now=now,
            **parts,
        )

    async def archive(self) -> ArchivableShard:
        """Archives the shard; returns it."""
        shard = self.shard()
        await shard.begin()
        assert await shard.archive()
        return shard

    async def check(self) -> None:
        """Checks that the shard opens with all its writes, and takes more."""
        restore_shard(self.directory, self.url, NoProgress())
        live = opened(self.directory)
        assert contents(live) == self.passages
        assert (live.sequence, live.log_id) == (self.sequence, self.log_id)
        (written,) = await live.write([put(stored_id("b", "new"))], Deadline.after(60))
        assert written.sequence == self.sequence + 1
        await live.close()


async def archiving_shard(tmp_path: Path) -> Archiving:
    names = [stored_id(tenant, f"p{n}") for tenant in ("acme", "b") for n in range(5)]
    directory = built(tmp_path, {name: f"text of {name}" for name in names}, tenants=True)
    live = opened(directory)
    await live.write([put(stored_id("acme", "p1"), "written first")], Deadline.after(60))
    merged = merge(live.directory, directory, live.sequence)
    await live.swap(open_shard(Path(merged.directory), ef=64))
    await live.write([put(stored_id("acme", "p2"), "written later")], Deadline.after(60))
    made = Archiving(
        directory, str(tmp_path / "archive"), contents(live), live.log_id, live.sequence
    )
    await live.close()
    return made
