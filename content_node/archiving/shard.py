"""Archives a shard that nobody uses, and restores it for its first call."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import nullcontext, suppress
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import structlog

from winnow.content_node.archiving.archives import Archives
from winnow.content_node.archiving.files import (
    ShardChangedError,
    commit_archive,
    lock_archived,
    remove_files,
    remove_read_back,
    upload_shard,
)
from winnow.content_node.archiving.gate import ShardGate
from winnow.content_node.archiving.journal_watch import REPLY_SECONDS, WatchedReplica
from winnow.content_node.archiving.opened_shard import OpenedShard
from winnow.content_node.archiving.policy import CHANGE_PAUSE, ShardUse
from winnow.content_node.archiving.stub import ArchiveStub
from winnow.content_node.archiving.tidying import ArchiveTidying, Needed
from winnow.content_node.daemon_work import DaemonWork
from winnow.content_node.journal.metrics import JournalMetrics
from winnow.content_node.live.custody import read_custody
from winnow.content_node.live.locks import DirectoryLock
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.live.tenant_usage import usages_in
from winnow.content_node.metrics import ArchiveMetrics
from winnow.content_node.shard.manifest import read_shard_manifest
from winnow.deadline import Clock, Deadline, Sleep
from winnow.domain.partition import root_of
from winnow.errors import ArtefactError, UnavailableError, WinnowError
from winnow.quoting import shown

_log = structlog.get_logger("content_node")


def _utc_now() -> datetime:
    return datetime.now(UTC)


class ArchivableShard:
    """A shard that is open or archived. Its calls enter by `gate`."""

    def __init__(
        self,
        directory: Path,
        archives: Archives,
        *,
        open_shard: Callable[[], Awaitable[OpenedShard]],
        close_shard: Callable[[], Awaitable[None]],
        merge_lock: asyncio.Lock,
        may_archive: Callable[[], bool] = lambda: True,
        metrics: ArchiveMetrics,
        journal_metrics: Callable[[], JournalMetrics] | None = None,
        clock: Clock = time.monotonic,
        sleep: Sleep = asyncio.sleep,
        now: Callable[[], datetime] = _utc_now,
    ) -> None:
        """Opens nothing yet.

        Args:
            directory: the shard.
            archives: the archive of the node.
            open_shard: opens the shard; an archived one is restored first.
            close_shard: closes the shard and releases its directory.
            merge_lock: held while a shard of the node is merged.
            may_archive: whether the shard may be archived now: false while it moves, for example.
            metrics: metrics of this shard.
            journal_metrics: returns the metrics of the shard's journal; None without a journal.
            clock: returns the time in seconds.
            sleep: waits for a number of seconds.
            now: returns the time that a snapshot records.

        """
        self._directory, self._archives, self._metrics = directory, archives, metrics
        self._open_shard, self._close_shard = open_shard, close_shard
        self._merge_lock, self._may_archive = merge_lock, may_archive
        self._journal_metrics = journal_metrics
        self._clock, self._sleep, self._now = clock, sleep, now
        self.gate = ShardGate[OpenedShard](self._bring_back, clock)
        self.stub: ArchiveStub | None = None
        """The stub of the shard while it is not open. It describes the shard."""
        self.moves = 0
        """Number of times that the shard was handed over, while it is not open."""
        self._is_archived = False
        self._watched: WatchedReplica | None = None
        """The shard as `Archives.watch` has it while its stub describes it."""
        self._lock: DirectoryLock | None = None
        """The lock of the directory while the shard is archived."""
        self._changing = asyncio.Lock()
        """Held while the shard is closed and archived, or restored and opened."""
        self._committing: asyncio.Task[None] | None = None
        self._failed_at: float | None = None
        self._is_closed = False
        self._tidying = ArchiveTidying(
            directory,
            archives.url,
            check=self._check_in_use,
            retry_pause=archives.policy.retry_pause,
            clock=clock,
        )

    async def begin(self) -> ArchiveStub | None:
        """Opens the gate to a shard on this disk; returns the stub of an archived one instead.

        To be called once. A node with a journal restores a shard that was archived without one: its
        stub does not say which entries it has. Raises ArtefactError if the shard cannot be opened
        or locked, and the errors of `open_shard`.
        """
        held = await DaemonWork(partial(_hold_archived, self._directory)).result()
        if held is not None and self._archives.watch and held[0].journal_end is None:
            held[1].release()
            held = None
        if held is None:
            self.gate.open(await self._open_shard())
        else:
            self.stub, self._lock = held
            self.moves = (await DaemonWork(partial(read_custody, self._directory)).result()).moves
            self._watch_journal()
            self._set_archived(True)
        return self.stub

    async def run(self) -> None:
        """Archives the shard whenever the policy asks for it, until it is cancelled."""
        while True:
            await self._sleep(self._archives.policy.check_interval)
            await self._tidy_if_due()
            if not self._is_due():
                continue
            async with self._archives.one_at_a_time:
                async with self._merge_lock:
                    pass  # the end of a merge removes files of deleted tenants
                if self._is_due():  # no call came while this waited
                    await self.archive()

    async def archive(self) -> bool:
        """Archives the shard; returns False if a call came, or it failed, or it was not open.

        The shard is served while it is copied. A failure is logged, and the shard stays open.
        """
        opened, since = self.gate.opened, self.gate.last_call
        if opened is None:
            return False
        started = self._clock()
        try:
            self._tidying.forget()
            view = opened.live.view
            stub = await self._upload(opened.live)
            moves = opened.live.custody.moves
            async with self._merge_lock:
                if (
                    stub is None
                    or opened.live.view is not view
                    or opened.live.journal_position != (stub.journal_position or "")
                    or not self._may_archive()
                    or not self.gate.try_close(since)
                ):
                    return self._abandon()
                del view
                self.stub = stub  # describes the shard from now on
                self.moves = moves
                del opened
                self._committing = asyncio.create_task(self._commit(stub))
                self._watch_journal()  # the follower ends, and the stub replies from now on
                await asyncio.shield(self._committing)
        except ShardChangedError:
            return self._abandon()
        except Exception as error:  # noqa: BLE001 (the shard stays, and archiving is tried again)
            self._failed_at = self._clock()
            self._metrics.archives.labels("failed").inc()
            known = isinstance(error, WinnowError | OSError)
            _log.error(
                "archiving failed; the shard stays on this disk",
                **self._names,
                url=shown(self._archives.url),
                reason=str(error) or repr(error),
                exc_info=None if known else error,
            )
            return False
        self._failed_at = None
        self._metrics.archives.labels("done").inc()
        _log.info(
            "shard archived",
            **self._names,
            url=stub.url,
            snapshot=stub.snapshot,
            sequence=stub.sequence,
            seconds=round(self._clock() - started, 3),
        )
        await self._tidy()
        return True

    def _abandon(self) -> bool:
        """Counts an attempt that a use of the shard ended; returns False."""
        self._metrics.archives.labels("abandoned").inc()
        _log.info("archiving abandoned: the shard is used or changes", **self._names)
        return False

    async def close(self) -> None:
        """Ends archiving and restoring, and releases the directory of an archived shard."""
        self._is_closed = True
        self._unwatch()
        if self._committing is not None:
            await asyncio.gather(self._committing, return_exceptions=True)
        await self.gate.close()
        self._unwatch()  # it may have been archived meanwhile
        if self._archives.watch is not None:
            await self._archives.watch.wait_until_ended()
        if self._lock is not None:
            self._lock.release()

    def _is_due(self) -> bool:
        opened = self.gate.opened
        if opened is None or not self._may_archive():
            return False
        now = self._clock()
        use = ShardUse(
            idle=now - self.gate.last_call,
            has_tenants=opened.live.base.manifest.has_tenants,
            deletes_tenant=opened.live.merge_backlog().since_tenant_deletion is not None,
            since_failure=None if self._failed_at is None else now - self._failed_at,
        )
        return self._archives.policy.is_due(use)

    async def _upload(self, live: LiveShard) -> ArchiveStub | None:
        """Copies the shard to the archive; returns its stub.

        Returns None if the shard was written to or merged meanwhile. Raises as `upload_shard`.
        """
        view, position = live.view, live.journal_position
        upload = partial(
            upload_shard,
            self._directory,
            self._archives.url,
            self._now,
            merged=live.merged,
            check=self._check_in_use,
        )
        uploaded = await DaemonWork(upload).result()
        (part,) = uploaded.snapshot.parts
        if live.view is not view or part.sequence != view.sequence:
            return None
        if live.journal_position != position:
            return None  # an entry without writes: the copy may have been made before or after it
        built = await DaemonWork(partial(read_shard_manifest, self._directory)).result()
        usages = await DaemonWork(partial(usages_in, view)).result()
        return ArchiveStub(
            url=shown(self._archives.url),
            folder=uploaded.folder,
            snapshot=uploaded.snapshot.name,
            manifest=built,
            passages=view.passages,
            generation=view.generation,
            sequence=view.sequence,
            log_id=view.log_id,
            journal_position=position or None,
            fields=view.field_names,
            has_token_vectors=view.has_token_vectors,
            tenants=tuple((name, used.passages, used.bytes) for name, used in usages.items()),
        )

    async def _tidy_if_due(self) -> None:
        """Removes what the shard does not need from the archive, if a change or a restart of the
        node may have left something there.
        """
        if self._needed is not None and self._tidying.is_due(self._needed):
            # many shards may have been archived when the node started
            is_open = self.gate.opened is not None
            async with nullcontext() if is_open else self._archives.one_at_a_time:
                await self._tidy()

    async def _tidy(self) -> None:
        if self._needed is not None:
            await self._tidying.tidy(self._needed)

    @property
    def _needed(self) -> Needed | None:
        """What the archive has to keep; None while the shard is archived or restored."""
        if self.gate.opened is not None:
            return self.gate.opened.live.merged
        return self.stub if self._is_archived else None

    async def _commit(self, stub: ArchiveStub) -> None:
        """Closes the shard, and replaces its files by the stub. After a failure it is reopened."""
        async with self._changing:
            try:
                await self._close_shard()
                commit = partial(commit_archive, self._directory, stub)
                self._lock = await DaemonWork(commit).result()
            except BaseException:
                with suppress(UnavailableError):  # the shard is being closed
                    self.gate.begin_restore()  # waits until this ends
                raise
            self._set_archived(True)

    async def _bring_back(self) -> OpenedShard:
        """Restores and opens the shard. Raises the errors of `open_shard`.

        If as many shards of the node are being restored as allowed, this waits for one of them.
        """
        started = self._clock()
        async with self._changing, self._archives.restores:
            if self._lock is not None:
                self._lock.release()
                self._lock = None
            try:
                opened = await self._open_shard()
            except Exception as error:
                self._metrics.restores.labels("failed").inc()
                reason = str(error) or repr(error)
                _log.error("restoring a shard failed", **self._names, reason=reason)
                raise
            # so that answers are as current as those of an open replica; the follower alone would
            # report an unchanged journal only after a heartbeat
            if await self._has_all_entries(REPLY_SECONDS) is not True:
                await opened.catch_up()
            self._unwatch()
            stub, self.stub = self.stub, None
            if self._is_archived and stub is not None:
                self._set_archived(False)
                seconds = self._clock() - started
                self._metrics.restores.labels("done").inc()
                self._metrics.restore_seconds.observe(seconds)
                _log.info(
                    "archived shard restored",
                    **self._names,
                    snapshot=stub.snapshot,
                    sequence=stub.sequence,
                    seconds=round(seconds, 3),
                )
            return opened

    def _set_archived(self, archived: bool) -> None:
        self._is_archived = archived
        self._metrics.archived.set(archived)

    async def knows_all_writes(self, deadline: Deadline) -> bool:
        """Returns whether the stub has all writes of its journal, as far as is known.

        Asks the journal. If it does not reply in time, the stub is as current as an open replica.
        Returns False once the shard is open.
        """
        seconds = min(REPLY_SECONDS, max(deadline.before_reply().left(), 0.0))
        return await self._has_all_entries(seconds) is not False

    async def _has_all_entries(self, seconds: float) -> bool | None:
        """Returns whether the stub has all entries; None if its journal does not reply."""
        watch, watched = self._archives.watch, self._watched
        if watch is None:
            return True
        return watched is not None and await watch.has_all_entries(watched, seconds)

    def _watch_journal(self) -> None:
        """Restores the shard once its journal has an entry that the stub lacks."""
        watch, metrics, stub = self._archives.watch, self._journal_metrics, self.stub
        if watch is None or metrics is None or stub is None or self._is_closed:
            return
        assert stub.journal_end is not None  # only a shard that follows the journal is archived
        built = stub.manifest
        self._watched = WatchedReplica(
            index_id=built.index_id,
            shard=root_of(built.shard, built.shards),
            end=stub.journal_end,
            restore=self._restore_for_entry,
            metrics=metrics(),
        )
        watch.add(self._watched)

    def _restore_for_entry(self) -> None:
        with suppress(UnavailableError):  # it failed a moment ago, and is tried again
            self.gate.begin_restore(CHANGE_PAUSE)

    def _unwatch(self) -> None:
        watched, self._watched = self._watched, None
        if watched is not None and self._archives.watch is not None:
            self._archives.watch.remove(watched)

    def _check_in_use(self) -> None:
        """Raises UnavailableError once the shard is closed, to end the work of a thread."""
        if self._is_closed:
            raise UnavailableError("the shard was closed")

    @property
    def _names(self) -> dict[str, str]:
        return {"directory": str(self._directory)}


def _hold_archived(directory: Path) -> tuple[ArchiveStub, DirectoryLock] | None:
    """Locks an archived shard, and removes files that an interrupted step has left.

    Returns None if the shard is not archived. Raises ArtefactError if the stub is damaged, or the
    directory is used by another node or cannot be written.
    """
    try:
        held = lock_archived(directory)
        if held is None:
            remove_read_back(directory)
            return None
        try:
            remove_files(directory)
        except BaseException:
            held[1].release()
            raise
    except OSError as error:
        raise ArtefactError(f"{directory} cannot be used: {error.strerror or error}") from error
    return held
