"""One run that copies an index: first its passages, then its later writes in their order.

A run may end at any moment, also by kill -9. The next run goes on: the catalog has the positions up
to which the writes of the source are in the copy. A write that is copied again changes nothing in
the end, because the writes after it are copied again, too.
"""

import asyncio
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol, TypeVar

from winnow.catalog import CatalogFile
from winnow.content_node.copying.copy_writer import CopyWriter
from winnow.content_node.copying.encoding import CopyEncoder
from winnow.content_node.copying.index_nodes import IndexNodes, OwnedShard
from winnow.content_node.copying.shard_contents import ShardContents
from winnow.content_node.live.log_entry import LoggedWrite
from winnow.content_node.transfer.remote import PeerShard
from winnow.deadline import Deadline
from winnow.domain.catalog import Catalog
from winnow.domain.copying import copy_of, with_progress, with_run
from winnow.domain.partition import holds
from winnow.domain.tenant import names_no_passage
from winnow.domain.write import Put, Write
from winnow.errors import ArtefactError
from winnow.faultpoints import reach
from winnow.quoting import many
from winnow.security.peers import PLAIN_TEXT, PeerChannels
from winnow.storage.pull import CopyProgress

_BATCH = 128
"""Number of passages that are compared, encoded and stored together."""
_RECORD_SECONDS = 30.0
"""Seconds after which the positions are recorded again while later writes are copied."""
_CLOSE_SECONDS = 60.0
"""Seconds in which nodes read the catalog and close the copy."""
Item = TypeVar("Item")


class CopyListener(CopyProgress, Protocol):
    """Receives the progress of a run: stages, steps and remarks."""

    def say(self, text: str) -> None:
        """Prints a remark."""


class CopyRun:
    """A run of copying. Create it by `begin`."""

    def __init__(
        self,
        file: CatalogFile,
        name: str,
        catalog: Catalog,
        *,
        encoder: CopyEncoder,
        listener: CopyListener,
        peers: PeerChannels = PLAIN_TEXT,
    ) -> None:
        """`catalog` is the version that began the run."""
        copy = copy_of(catalog, name)
        self.file, self.name, self.number = file, name, copy.run
        self.source = IndexNodes(
            copy.source, catalog.indexes[copy.source], catalog.nodes, copy=name, peers=peers
        )
        self.target = IndexNodes(name, catalog.indexes[name], catalog.nodes, copy=name, peers=peers)
        self._positions, self._filled = dict(copy.positions), set(copy.filled)
        self.logs = copy.logs
        """The logs of both indexes, as far as they are known."""
        self._recorded = time.monotonic()
        self._encoder, self._listener = encoder, listener
        self._writer: CopyWriter | None = None

    @classmethod
    async def begin(
        cls,
        file: CatalogFile,
        name: str,
        encoder: CopyEncoder,
        listener: CopyListener,
        peers: PeerChannels = PLAIN_TEXT,
    ) -> "CopyRun":
        """Begins a run, which ends earlier ones. Raises NotFoundError if `name` is not a copy."""
        catalog = await asyncio.to_thread(file.change, _changing(lambda c: with_run(c, name)))
        reach("copy.begun")
        return cls(file, name, catalog, encoder=encoder, listener=listener, peers=peers)

    async def open(self) -> CopyWriter:
        """Returns the writer of the copy, once its nodes take only writes of this run.

        Raises ArtefactError if a shard of the copy was restored from a snapshot since an earlier
        run.
        """
        shards = await self.target.wait_until_closed(self.number, Deadline.after(_CLOSE_SECONDS))
        self._check_own_logs(shards)
        self._writer = CopyWriter(
            self.target,
            shards,
            run=self.number,
            fingerprint=self._encoder.fingerprint,
            on_log=self._check_own_log,
            say=self._listener.say,
        )
        return self._writer

    async def fill(self) -> None:
        """Copies the passages of all shards whose passages were not copied yet."""
        shards = await self._source_shards()
        for shard in sorted(shards.keys() - self._filled):
            await self._fill_shard(shard, shards[shard].node)

    async def follow(self, up_to: Mapping[int, int] | None = None) -> int:
        """Copies the later writes; returns their number.

        `up_to` has the last write of each shard of the source; None for those that it has now.

        Raises ArtefactError if the source no longer has the next writes.
        """
        shards = await self._source_shards()
        ends = up_to or {shard: held.info.sequence for shard, held in shards.items()}
        copied = 0
        for shard, held in shards.items():
            copied += await self._follow_shard(shard, held, ends[shard])
        return copied

    async def check_complete(self) -> dict[int, OwnedShard]:
        """Checks that the copy has as many passages as its source; returns the shards of the copy.

        To be called while neither of them takes writes. Raises ArtefactError if passages are
        missing, or a shard of the copy was restored from a snapshot.
        """
        source, target = await self._source_shards(), await self.target.shards()
        self._check_own_logs(target)
        expected, found = (
            sum(each.info.passages for each in shards.values()) for shards in (source, target)
        )
        if found != expected:
            raise ArtefactError(
                f"{self.name} has {many(found, 'passage')}, but {self.source.name} has {expected}: "
                f"drop {self.name}, and begin again"
            )
        return target

    async def record(self) -> None:
        """Records the positions in the catalog, from which the next run goes on."""
        positions, filled, logs = dict(self._positions), tuple(self._filled), self.logs
        await self.change(
            lambda catalog: with_progress(catalog, self.name, self.number, positions, filled, logs)
        )
        self._recorded = time.monotonic()

    async def change(self, change: Callable[[Catalog], Catalog]) -> Catalog:
        """Changes the catalog. If the call is cancelled, it ends once the catalog is written."""
        changing = asyncio.ensure_future(asyncio.to_thread(self.file.change, _changing(change)))
        try:
            return await asyncio.shield(changing)
        except asyncio.CancelledError:
            await asyncio.gather(changing, return_exceptions=True)
            raise

    async def _source_shards(self) -> dict[int, OwnedShard]:
        """Returns the shards of the source.

        Raises ArtefactError if one was restored from a snapshot since the copying began.
        """
        shards = await self.source.shards()
        found = {shard: each.info.log_id for shard, each in shards.items()}
        self.logs = self.logs.with_source(found, self.source.name, self.name)
        return shards

    def _check_own_logs(self, shards: Mapping[int, OwnedShard]) -> None:
        for shard, each in shards.items():
            self._check_own_log(shard, each.info.log_id)

    def _check_own_log(self, shard: int, log_id: str) -> None:
        self.logs = self.logs.with_own({shard: log_id}, self.name)

    async def _fill_shard(self, shard: int, node: str) -> None:
        with tempfile.TemporaryDirectory(prefix="winnow-copy-") as directory:
            contents = ShardContents(Path(directory))
            async with self.source.open_shard(node, shard) as peer:
                opened = await peer.open_copy()
                if shard not in self._positions:
                    # an earlier run may have copied passages that were deleted meanwhile
                    self._positions[shard] = opened.sequence
                    await self.record()
                reach("copy.positioned")
                await contents.fetch(opened, node, self._listener)
            total = await asyncio.to_thread(contents.count)
            self._listener.start(f"copying passages of shard {shard}", total)
            for puts in contents.puts(_BATCH):
                await self._store(puts)
                self._listener.advance(len(puts))
            for deletions in _batches(contents.deletions(), _BATCH):
                await self._open_writer.write(deletions)
        self._filled.add(shard)
        await self.record()
        reach("copy.filled")

    async def _follow_shard(self, shard: int, held: OwnedShard, end: int) -> int:
        first = position = self._positions[shard]
        async with self.source.open_shard(held.node, shard) as peer:
            while position < end:
                if writes := await self._next_writes(peer, position):
                    await self._copy_writes([w for w in writes if self._is_of(shard, w)])
                    position = self._positions[shard] = writes[-1].sequence
                    self._listener.advance(len(writes))
                    reach("copy.followed")
                if time.monotonic() - self._recorded > _RECORD_SECONDS:
                    await self.record()
        return position - first

    def _is_of(self, shard: int, write: LoggedWrite) -> bool:
        """Whether a write of the log of a shard is of a passage of this shard.

        The log of a half has the writes of the other half as deletions. In an index with tenants, a
        log also has writes of no passage.
        """
        return holds(shard, self.source.index.shards, write.id) and not names_no_passage(write.id)

    async def _next_writes(self, peer: PeerShard, position: int) -> Sequence[LoggedWrite]:
        batch = await peer.read_log(position)
        found = {peer.shard: batch.log_id}
        self.logs = self.logs.with_source(found, self.source.name, self.name)
        if batch.is_trimmed:
            raise ArtefactError(
                f"shard {peer.shard} of {self.source.name} no longer has the writes after "
                f"{position}: drop {self.name}, and begin again"
            )
        return batch.writes

    async def _copy_writes(self, writes: Sequence[LoggedWrite]) -> None:
        """Copies writes in their order."""
        puts = [Put(each.put.passage, each.version) for each in writes if each.put is not None]
        encoded = iter(await asyncio.to_thread(self._encoder.encode, puts))
        await self._open_writer.write(
            [Write(each.id, each.version) if each.put is None else next(encoded) for each in writes]
        )

    async def _store(self, puts: Sequence[Put]) -> None:
        changed = await self._open_writer.changed(puts)
        writes = await asyncio.to_thread(self._encoder.encode, changed)
        await self._open_writer.write(writes)
        reach("copy.stored")

    @property
    def _open_writer(self) -> CopyWriter:
        assert self._writer is not None  # `open` was called
        return self._writer


def _changing(change: Callable[[Catalog], Catalog]) -> Callable[[Catalog | None], Catalog]:
    return lambda before: change(before or Catalog())


def _batches(items: Sequence[Item], size: int) -> Iterator[Sequence[Item]]:
    for start in range(0, len(items), size):
        yield items[start : start + size]
