"""Composes a served shard of this process: file checks, writes, merges, copies and archives."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Mapping
from functools import cached_property, partial
from pathlib import Path

import structlog
from prometheus_client import CollectorRegistry

from winnow.content_node.admission import AdmittedSearcher
from winnow.content_node.archiving.calls import (
    ArchivableCopies,
    ArchivableSearcher,
    ArchivableWriter,
)
from winnow.content_node.archiving.opened_shard import OpenedShard
from winnow.content_node.archiving.policy import CHANGE_PAUSE
from winnow.content_node.archiving.shard import ArchivableShard
from winnow.content_node.composing.loader import ShardLoader
from winnow.content_node.composing.parts import NodeParts
from winnow.content_node.daemon_work import DaemonWork
from winnow.content_node.file_changes import ShardHealth, watch_changes
from winnow.content_node.identity import shard_info
from winnow.content_node.journal.composing import ShardWritePath
from winnow.content_node.journal.metrics import JournalMetrics
from winnow.content_node.live.closing import Closing
from winnow.content_node.live.copied_writer import CopiedWriter
from winnow.content_node.live.custody import OWNED, Role
from winnow.content_node.live.disk_metrics import DiskMetrics
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.merging.merger import Merger
from winnow.content_node.metrics import ArchiveMetrics, ShardMetrics
from winnow.content_node.served_shard import ServedShard
from winnow.content_node.shard import StoredSegment
from winnow.content_node.shard.changes import FileChange
from winnow.content_node.shard.manifest import ShardManifest
from winnow.content_node.snapshots.last_snapshot import SnapshotMetrics
from winnow.content_node.splitting.make_half import make_half
from winnow.content_node.splitting.parent import follow_parent
from winnow.content_node.supervision import keep_running
from winnow.content_node.transfer.following import LogFollower
from winnow.content_node.transfer.source import TransferSource
from winnow.domain.index_copy import IndexWrites
from winnow.domain.shard import ShardInfo, shard_number_of
from winnow.errors import (
    ArtefactError,
    IdentityError,
    NotLoadedError,
    NotWritableError,
    UnavailableError,
    WinnowError,
)
from winnow.heap import collect_closed
from winnow.shard_writer import WritableShard

_log = structlog.get_logger("content_node")
_FILE_CHECK_INTERVAL = 2.0
"""Seconds between checks of the shard's files, which take two system calls for each file."""


class RunningShard:
    """Serves a shard: checks its files, stores and merges its writes, and follows its owner."""

    def __init__(
        self,
        directory: Path,
        parts: NodeParts,
        registry: CollectorRegistry,
        set_serving: Callable[[bool], Awaitable[None]],
        *,
        check: Callable[[ShardManifest, Path], None],
        live_shard: Callable[[int], LiveShard],
        pull: str = "",
    ) -> None:
        """Loads nothing yet.

        Args:
            directory: the shard.
            parts: the objects that all shards of the process share.
            registry: gets the metrics of this shard.
            set_serving: sets the health of the process for this shard.
            check: raises ArtefactError if the node may not serve the shard; runs in any thread.
            live_shard: returns a shard of this process by its number, or raises UnavailableError.
            pull: URL of snapshots from which a missing shard is restored; empty for none.

        """
        self.directory, self._parts, self._registry = directory, parts, registry
        self._check, self._live_shard = check, live_shard
        self.served = ServedShard(shard_number_of(directory.name))
        self._shard_metrics = ShardMetrics(registry)
        self._status = ShardHealth(self.served, set_serving, self._shard_metrics)
        self._loader = ShardLoader(
            directory,
            parts,
            registry,
            check=check,
            closed_since=lambda: self._write_path.closed_since if self._write_path else 0,
            pull=pull,
        )
        self.loading = DaemonWork(self._loader.load, self._discard)
        self._tasks: list[asyncio.Task[None]] = []
        self._open_tasks: list[asyncio.Task[None]] = []
        """The tasks that end when the shard is archived."""
        self._merger: Merger[StoredSegment] | None = None
        self._write_path: ShardWritePath | None = None
        self._live: LiveShard | None = None
        self._follower: LogFollower | None = None
        self._cannot_follow = False
        """Whether this copy of a moving shard cannot follow its owner any more."""
        self._closing = Closing()
        self._copied: Mapping[str, Mapping[int, int]] = {}
        """The positions of copies of the index, which follow the log, by the name of the copy."""
        self.may_archive: Callable[[], bool] = lambda: True
        """Whether the assignment lets this shard be archived now."""
        self._archive = self._archivable()
        self.is_never_archived = False
        """Whether the node has an archive, and the index of the shard has no tenants."""

    async def load(self) -> None:
        """Loads and serves the shard. To be called once.

        Raises NotLoadedError if it cannot be loaded; `served` then refuses calls with the reason.
        """
        try:
            if self._archive is None:
                self._serve(await self._open_shard())
            else:
                await self._serve_archivable(self._archive)
        except (ArtefactError, IdentityError) as error:
            self.served.fail(str(error))
            raise NotLoadedError(str(error)) from error
        self._shard_metrics.ready.set(1)
        DiskMetrics(self._registry, self.directory)
        SnapshotMetrics(self._registry, self.directory)

    def _serve(self, opened: OpenedShard) -> None:
        """Answers all calls by an opened shard."""
        self.served.serve(opened.searcher)
        encoding = self._parts.bundle.manifest.encoding_fingerprint
        assert self._write_path is not None  # set when the shard was opened
        copied = partial(CopiedWriter, self._write_path.copied)
        self.served.accept_writes(WritableShard(opened.writer, opened.info, encoding, copied))
        self.served.allow_transfer(lambda: self._transfer_source(opened))

    def _transfer_source(self, opened: OpenedShard) -> TransferSource:
        settings = self._parts.settings
        return TransferSource(
            shard=opened.live,
            directory=self.directory,
            index_id=opened.info.index_id,
            takes_writes=settings.feed and not settings.journal,
        )

    async def _serve_archivable(self, archive: ArchivableShard) -> None:
        """Answers all calls by a shard that may be archived."""
        parts = self._parts
        stub = await archive.begin()
        if stub is not None:
            try:
                self._check(stub.manifest, self.directory)
                info = shard_info(stub, parts.bundle)
            except (ArtefactError, IdentityError):
                await archive.close()  # else an entry of its journal would restore it
                raise
            await DaemonWork(parts.reader.open_warm).result()  # not by the first question
            _log.info("shard is archived", shard=info.shard, url=stub.url, sequence=info.sequence)
        else:
            assert archive.gate.opened is not None  # opened by `begin`
            info = archive.gate.opened.info
        self.served.number, self.served.index_id = info.shard, info.index_id
        self.is_never_archived = not info.tenants
        journaled = bool(parts.settings.journal)
        searcher = ArchivableSearcher(archive, parts.bundle, parts.load, journaled=journaled)
        self.served.serve(searcher)
        encoding = parts.bundle.manifest.encoding_fingerprint
        writer, copied = ArchivableWriter(archive.gate), ArchivableCopies(archive.gate)
        copied_writer = partial(CopiedWriter, copied)
        self.served.accept_writes(WritableShard(writer, info, encoding, copied_writer))
        self.served.allow_transfer(lambda: self._transfer_source(archive.gate.touch()))
        self._start_task("archiving", archive.run)

    async def _open_shard(self) -> OpenedShard:
        """Loads the shard, and starts its tasks. An archived shard is restored first.

        Raises ArtefactError or IdentityError if it cannot be loaded.
        """
        load = partial(self._loader.load, at_start=not self._is_archived)
        self.loading = DaemonWork(load, self._discard)
        live, searcher = await self.loading.result()
        self._live = live
        live.begin_closed(self._closing)
        self._hold_log(live)
        self.served.number = live.base.manifest.shard
        self.served.index_id = live.base.manifest.index_id
        try:
            info = shard_info(live.view, self._parts.bundle)
            self._write_path = ShardWritePath(
                journal=self._parts.settings.journal,
                shard=live,
                info=info,
                encoding_fingerprint=self._parts.bundle.manifest.encoding_fingerprint,
                metrics=self._journal_metrics if self._parts.settings.journal else None,
                skew=self._parts.settings.journal_skew,
                on_entry=self._record_entry,
            )
        except BaseException:
            self._live = None
            self._loader.discard(live)
            raise
        await self._write_path.close_to_fronts(self._closing)
        writer = self._write_path.start(self._status.stopped_following)
        if live.custody.role is Role.FOLLOWER:
            self._follow_owner(live, info)
        checks = partial(
            watch_changes, live.file_change, self._status.files_changed, _FILE_CHECK_INTERVAL
        )
        self._start_task("checking the shard's files", checks, self._open_tasks)
        if self._parts.settings.feed:
            self._merger = self._loader.open_merger(live)
            self._start_task("merging", self._merger.run, self._open_tasks)
        return OpenedShard(
            live=live,
            searcher=searcher,
            writer=writer,
            copied=self._write_path.copied,
            catch_up=self._write_path.catch_up,
            info=info,
        )

    def _discard(self, loaded: tuple[LiveShard, AdmittedSearcher]) -> None:
        """Releases a shard whose loading was cancelled."""
        live, _ = loaded
        self._loader.discard(live)

    @cached_property
    def _journal_metrics(self) -> JournalMetrics:
        """Metrics of the journal. A shard that is not loaded yet has none: it cannot follow one."""
        return JournalMetrics(self._registry)

    def _record_entry(self) -> None:
        """Counts an entry of the journal as a use of the shard."""
        if self._archive is not None:
            self._archive.gate.record_use()

    async def _close_shard(self) -> None:
        """Stores waiting writes, and releases the directory of the opened shard and its memory."""
        await _end(self._open_tasks)
        try:
            await self._close_write_path()
        finally:
            self._live = self._write_path = self._merger = self._follower = None
            await self._status.files_closed()
            collect_closed()
            self._parts.trimmer.schedule_trim()

    async def merge(self) -> None:
        """Merges the writes into the shard's files now, if there are any.

        Raises:
            NotLoadedError: the shard was not loaded.
            NotWritableError: the shard takes no writes.
            WinnowError: the merge failed; the shard is served as before.

        """
        if self.served.fault:
            raise NotLoadedError(self.served.fault)
        if self._archive is not None and self._archive.gate.opened is None:
            raise UnavailableError(
                "the shard is archived: ask a question of one of its tenants, which restores it"
            )
        if self._merger is None:
            raise NotWritableError("the shard takes no writes, so there is nothing to merge")
        await self._merger.merge_now()

    def start_leaving(self) -> None:
        """Stops checking files and merging, and reports to callers that the node is leaving."""
        for task in (*self._tasks, *self._open_tasks):
            task.cancel()
        self.served.start_leaving()
        self._shard_metrics.ready.set(0)

    async def close(self) -> None:
        """Stores waiting writes, and releases the directory."""
        await _end(self._tasks)
        if self._archive is not None:
            await self._archive.close()
            await _end(self._open_tasks)  # a restore may just have opened the shard
        await _end(self._open_tasks)  # a restore that has just ended has started some
        await self._close_write_path()

    async def _close_write_path(self) -> None:
        """Stores waiting writes, releases the directory, and drops what was loaded."""
        try:
            if self._write_path is not None:
                await self._write_path.close()
        finally:
            self._loader.release()

    @property
    def must_be_replaced(self) -> bool:
        """Whether this copy is permanently out of date: another node is the owner of the shard."""
        was_owner = self._live is not None and self._live.custody.role is Role.FORMER_OWNER
        return was_owner or self._cannot_follow

    async def try_prepare_close(self) -> bool:
        """Returns whether the node may close the shard as soon as other nodes serve it.

        After True the shard does not become the owner of the writes, unless `cancel_close` is
        called. Raises a WinnowError if the owner does not reply.
        """
        live, settings = self._live, self._parts.settings
        if self._is_archived:
            return False  # it is restored first
        if live is None or not settings.feed or self.must_be_replaced:
            return True
        if self._follower is not None and live.custody.role is Role.FOLLOWER:
            return await self._follower.try_prepare_drop()
        return bool(settings.journal)

    async def apply_copies(self, writes: IndexWrites) -> None:
        """Takes or refuses writes of front nodes, and keeps the log for copies, as the catalog
        says.

        Before the shard is loaded, this takes effect once it is loaded. Raises UnavailableError if
        the node is leaving. An archived shard is restored while the index is copied or closed.
        """
        self._closing = Closing(writes.closed_since, writes.source)
        self._copied = writes.copied
        if self._takes_part_in_copying and not self.restore_for_change():
            return
        if self._live is None or self._write_path is None:
            return
        self._hold_log(self._live)
        await self._write_path.close_to_fronts(self._closing)

    def _hold_log(self, live: LiveShard) -> None:
        """Keeps the writes that copies of the index lack."""
        for copy, positions in self._copied.items():
            live.hold_log(f"copy {copy}", positions.get(live.base.manifest.shard, 0))

    def restore_for_change(self) -> bool:
        """Begins to restore an archived shard; returns whether the shard is on this disk.

        A shard is restored before it moves, is replicated, split or copied.
        """
        if self._archive is None or not self._is_archived:
            return True
        with contextlib.suppress(UnavailableError):  # it failed a moment ago, and is logged
            self._archive.gate.begin_restore(CHANGE_PAUSE)
        return False

    @property
    def _is_archived(self) -> bool:
        """Whether the shard is archived, or is being archived or restored."""
        archive = self._archive
        return archive is not None and archive.stub is not None and archive.gate.opened is None

    @property
    def _takes_part_in_copying(self) -> bool:
        return bool(self._closing.since or self._closing.source or self._copied)

    def _may_be_archived(self) -> bool:
        """Whether nothing but calls keeps the shard open."""
        is_owner = self._live is not None and self._live.custody.takes_writes
        is_current = self._write_path is not None and self._write_path.is_current
        unchanged = not self._takes_part_in_copying and self.may_archive()
        return is_owner and is_current and unchanged

    @property
    def can_split(self) -> bool:
        """Whether this copy takes the writes of the shard, or its halves do after a split."""
        if self._is_archived:
            return False  # it is restored first
        custody = self._live.custody if self._live is not None else OWNED
        return custody.takes_writes or (custody.role is Role.FORMER_OWNER and not custody.node)

    @property
    def is_unfinished_half(self) -> bool:
        """Whether this is a half whose writes its parent still takes."""
        custody = self._live.custody if self._live is not None else OWNED
        return custody.role is Role.FOLLOWER and custody.parent is not None

    async def make_half(self, half: int, directory: Path) -> None:
        """Writes a half of this shard to a new directory.

        Raises UnavailableError if the shard is still loading, and the errors of
        `splitting.making.make_half`.
        """
        if self._live is None:
            raise UnavailableError("the shard is still loading")
        await make_half(
            self._live,
            half,
            directory,
            bundle=self._parts.bundle.directory,
            feeding=self._parts.settings.feed,
            one_at_a_time=self._parts.merge_lock,
        )

    async def move_away(self) -> None:
        """Refuses writes, if the shard follows a journal: its other replicas take them.

        So none arrives once the node no longer reports the shard. `cancel_close` undoes it.
        """
        if self._write_path is not None:
            await self._write_path.move_away()

    def cancel_close(self) -> None:
        """Keeps a shard open, although `try_prepare_close` returned True."""
        if self._write_path is not None:
            self._write_path.stay()
        if self._follower is not None:
            self._follower.cancel_drop()

    def _follow_owner(self, live: LiveShard, info: ShardInfo) -> None:
        """Starts to follow the owner of this copy."""
        if live.custody.parent is not None:
            follower = follow_parent(live, info, self._live_shard)
        else:
            peer_nodes = self._parts.peer_nodes
            assert peer_nodes is not None  # checked when it was loaded
            follower = LogFollower(
                live, lambda node: peer_nodes.open_shard(node, info.index_id, info.shard)
            )
        self._follower = follower
        self._tasks.append(asyncio.create_task(self._run_follower(follower)))

    async def _run_follower(self, follower: LogFollower) -> None:
        try:
            await follower.run()
            if self._write_path is not None:
                self._write_path.follow_journal()
        except Exception as error:  # noqa: BLE001 (no other code would notice the failure)
            reason = str(error) or repr(error)
            if isinstance(error, WinnowError):  # the assignment has the shard copied again
                _log.warning("the copy of the shard will be replaced", reason=reason)
            else:
                _log.exception("following the owner stopped", reason=reason)
            self._cannot_follow = True
            await self._status.stopped_following(FileChange(reason, readable=True))

    def _start_task(
        self,
        name: str,
        run: Callable[[], Awaitable[None]],
        tasks: list[asyncio.Task[None]] | None = None,
    ) -> None:
        """Starts a task that ends with the process; with `tasks`, one of those."""
        own = self._tasks if tasks is None else tasks
        own.append(asyncio.create_task(keep_running(name, run)))

    def _archivable(self) -> ArchivableShard | None:
        """Returns what archives the shard; None if the node has no archive."""
        parts = self._parts
        if parts.archives is None:
            return None
        return ArchivableShard(
            self.directory,
            parts.archives,
            open_shard=self._open_shard,
            close_shard=self._close_shard,
            merge_lock=parts.merge_lock,
            may_archive=self._may_be_archived,
            metrics=ArchiveMetrics(self._registry),
            journal_metrics=lambda: self._journal_metrics,
        )


async def _end(tasks: list[asyncio.Task[None]]) -> None:
    """Cancels tasks, waits for them, and forgets them, since their errors refer to the shard."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    tasks.clear()
