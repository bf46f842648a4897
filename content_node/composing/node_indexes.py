"""The indexes of a content node that follows a catalog: opens, closes and deletes them."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Protocol

import structlog

from winnow.catalog import CatalogFile
from winnow.catalog_reader import CATALOG_INTERVAL, CatalogReader, ReadsCatalog
from winnow.content_node.archiving.removing import try_remove_archives
from winnow.content_node.assigned.directories import delete_shard, prepare_data, shards_in
from winnow.content_node.composing.assigned_shards import AssignedShards
from winnow.content_node.composing.shard import RunningShard
from winnow.content_node.composing.shards import RunningShards
from winnow.content_node.daemon_work import DaemonWork
from winnow.content_node.repeated_warnings import RepeatedWarnings
from winnow.content_node.served_indexes import ServedIndexes
from winnow.content_node.settings import NodeSettings
from winnow.content_node.supervision import keep_running
from winnow.deadline import Clock, Sleep
from winnow.domain.assignment import Assignment
from winnow.domain.catalog import Catalog, CatalogIndex
from winnow.domain.copying import index_writes
from winnow.domain.index_copy import IndexWrites
from winnow.domain.shard import shard_number_of
from winnow.errors import WinnowError
from winnow.heap import collect_closed
from winnow.settings.errors import SettingsError

_log = structlog.get_logger("content_node")
_RETRY_AFTER = 10.0
"""Seconds after which an index that could not be opened or deleted is tried again."""
_SAVED = "catalog.json"
"""Name of the file below --data that has the last version of the catalog."""
_LINGER = 30.0
"""Seconds for which a dropped index still answers: fronts may not know yet that it was dropped, and
finish the requests that have begun.
"""


def index_directory(data: Path, index_id: str) -> Path:
    """The directory of the shards of a named index, below --data of a node."""
    return data / f"index-{index_id}"


class CatalogAssignment:
    """The assignment of one index, from the last version of the catalog that the node has read."""

    def __init__(self, index_id: str, catalog: Callable[[], Catalog | None]) -> None:
        """`catalog` returns the last version."""
        self._index_id, self._catalog = index_id, catalog
        self._last: Assignment | None = None

    def read(self) -> Assignment | None:
        """Returns the assignment. It stays when the catalog no longer has the index."""
        catalog = self._catalog()
        if catalog is not None and (name := catalog.name_of(self._index_id)):
            self._last = catalog.assignment(name)
        return self._last

    def writes(self) -> IndexWrites:
        """Returns what the nodes of the index do with writes."""
        catalog = self._catalog()
        name = catalog.name_of(self._index_id) if catalog is not None else ""
        return index_writes(catalog, name) if catalog is not None and name else IndexWrites()


class OpensIndexes(Protocol):
    """Opens named indexes. `NamedIndexOpener` implements it."""

    async def open(
        self, name: str, index: CatalogIndex, assignment: CatalogAssignment
    ) -> AssignedShards:
        """Opens an index without loading it. Raises a WinnowError or SettingsError if it fails."""

    def rename(self, index_id: str, name: str) -> None:
        """Exports the metrics of an open index under another name."""

    async def forget(self, index_id: str) -> None:
        """Removes the metrics and the health of a closed index."""


class NodeIndexes:
    """The named indexes of a node, and its default index if it has one."""

    def __init__(
        self,
        settings: NodeSettings,
        file: ReadsCatalog,
        opener: OpensIndexes,
        *,
        served: ServedIndexes,
        default: RunningShards | AssignedShards | None = None,
        watch_files: Callable[[], Awaitable[None]] | None = None,
        clock: Clock = time.time,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """Opens nothing yet.

        Args:
            settings: settings of the node.
            file: the file of the catalog.
            opener: opens named indexes.
            served: gets the shards of the named indexes.
            default: the shards of the default index; None if the node has none.
            watch_files: rereads the certificates for calls to other nodes; None without any.
            clock: seconds since 1970.
            sleep: waits for a number of seconds.

        """
        assert settings.data is not None
        self._name, self._data = settings.name, settings.data
        self._archive_url = settings.archive_url
        self._reader = CatalogReader(file, _in_daemon_thread)
        self._saved = CatalogFile(str(settings.data / _SAVED))
        self._opener, self.indexes = opener, served
        self._default, self._watch_files = default, watch_files
        self._clock, self._sleep = clock, sleep
        self._catalog: Catalog | None = None
        self._open: dict[str, AssignedShards] = {}
        """The open indexes by id."""
        self._names: dict[str, str] = {}
        """The last known name of each open index, by id."""
        self._changing: dict[str, asyncio.Task[None]] = {}
        """The indexes that are being opened or closed, by id."""
        self._not_before: dict[str, float] = {}
        """The earliest next attempt to open or delete an index, by id."""
        self._close_at: dict[str, float] = {}
        """When dropped indexes are closed, by id."""
        self._tasks: list[asyncio.Task[None]] = []
        self._deleting = asyncio.Lock()
        """Held while the files of an index are deleted."""
        self._warnings = RepeatedWarnings()
        """What was logged about deletions that are tried again."""
        self._is_leaving = False
        self._is_saved = True
        """Whether the last version of the catalog was saved for the next start."""

    @property
    def all(self) -> Sequence[RunningShard]:
        """All shards of the node."""
        return [shard for each in self._opened_indexes for shard in each.all]

    async def load(self) -> None:
        """Loads the shards of all indexes in the data directory, and begins to follow the catalog.

        Raises the errors of the default index. An index that cannot be opened does not affect the
        others, and is tried again.
        """
        await DaemonWork(partial(prepare_data, self._data)).result()
        found = await DaemonWork(partial(_index_directories, self._data)).result()
        self.indexes.expect(map(_index_id, found))
        if self._default is not None:
            await self._default.load()
        saved = await self._read_saved()
        await self._read_catalog()
        if self._catalog is None and saved is not None:
            _log.warning("catalog of an earlier run is used", version=saved.version)
            await self._apply(saved, self._clock())
        await asyncio.gather(*self._changing.values())
        following = keep_running("following the catalog", self._follow_catalog)
        self._tasks.append(asyncio.create_task(following))
        if self._watch_files is not None:
            watching = keep_running("certificates of other nodes", self._watch_files)
            self._tasks.append(asyncio.create_task(watching))

    def start_leaving(self) -> None:
        """Stops opening and closing indexes, and reports to callers that the node is leaving."""
        self._is_leaving = True
        for task in (*self._tasks, *self._changing.values()):
            task.cancel()
        for each in self._opened_indexes:
            each.start_leaving()

    async def close(self) -> None:
        """Stores waiting writes, and releases the directories."""
        tasks = [*self._tasks, *self._changing.values()]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        closed = await asyncio.gather(
            *(each.close() for each in self._opened_indexes), return_exceptions=True
        )
        for error in closed:
            if isinstance(error, BaseException):
                raise error

    async def update(self) -> None:
        """Reads the catalog once, and begins the changes that it asks for."""
        catalog = await self._read_catalog()
        if catalog is not None:
            await self._delete_dropped(catalog, self._clock())

    async def _read_catalog(self) -> Catalog | None:
        """Reads the catalog once; begins to open and close indexes as it says."""
        catalog = await self._reader.read()
        if catalog is None:
            await self._apply_copies()  # the logs are kept for copies
            return None
        if catalog != self._catalog or not self._is_saved:
            self._is_saved = await self._save(catalog)
        await self._apply(catalog, self._clock())
        return catalog

    async def _apply(self, catalog: Catalog, now: float) -> None:
        """Begins to open and close indexes as a version of the catalog says."""
        self._catalog = catalog
        await self._apply_copies()
        self._rename(catalog)  # before another index with the old name is opened
        wanted = set()
        for name, index in catalog.indexes.items():
            if not index.is_dropped and await self._is_here(index):
                wanted.add(index.index_id)
                if self._may_change(index.index_id, now):
                    self._start_change(index.index_id, self._open_and_load(name, index))
        for index_id in self._open.keys() - self._changing.keys():
            if index_id in wanted:
                self._close_at.pop(index_id, None)
            elif now >= self._close_at.setdefault(index_id, _closing_time(catalog, index_id, now)):
                self._start_change(index_id, self._close_index(index_id))

    def _rename(self, catalog: Catalog) -> None:
        for index_id in self._open:
            name = catalog.name_of(index_id)
            if name and self._names.get(index_id) not in (None, name):
                _log.info(
                    "index renamed", index_id=index_id, before=self._names[index_id], name=name
                )
                self._opener.rename(index_id, name)
                self._names[index_id] = name

    async def _apply_copies(self) -> None:
        """Makes all shards take or refuse writes as the catalog says.

        A version that could not be saved has no effect yet. If the node restarted with an earlier
        one, it would take writes after it has reported that it takes none.
        """
        if self._is_saved:
            for each in list(self._open.values()):
                await each.apply_copies()

    async def _read_saved(self) -> Catalog | None:
        """Reads the version that an earlier process has saved; None if there is none.

        With it a node that starts while the catalog cannot be read serves what it has. It deletes
        nothing by this version: an index may have been restored since.
        """
        try:
            saved = await DaemonWork(self._saved.read).result()
        except WinnowError as error:
            _log.warning("catalog of an earlier run not read", reason=str(error))
            return None
        if saved is not None:
            self._reader.assume(saved)
        return saved

    async def _save(self, catalog: Catalog) -> bool:
        """Saves a version for the next start; returns whether that succeeded."""
        try:
            await DaemonWork(partial(self._saved.replace, catalog)).result()
        except WinnowError as error:
            _log.warning("catalog not saved for the next start", reason=str(error))
            return False
        return True

    @property
    def _opened_indexes(self) -> list[RunningShards | AssignedShards]:
        return [*([self._default] if self._default is not None else []), *self._open.values()]

    async def _follow_catalog(self) -> None:
        while True:
            await self._sleep(CATALOG_INTERVAL)
            await self.update()

    async def _is_here(self, index: CatalogIndex) -> bool:
        """Whether the index has shards on this node, or is assigned to it."""
        if any(self._name in names for names in index.holders.values()):
            return True
        if not index.holders or index.index_id in self._open:
            return index.index_id in self._open
        return await DaemonWork(index_directory(self._data, index.index_id).exists).result()

    def _may_change(self, index_id: str, now: float) -> bool:
        is_here = index_id in self._open or index_id in self._changing
        return not is_here and not self._is_leaving and now >= self._not_before.get(index_id, 0.0)

    def _start_change(self, index_id: str, work: "asyncio._CoroutineLike[None]") -> None:
        task = asyncio.create_task(work)
        self._changing[index_id] = task

        def on_done(task: "asyncio.Task[None]") -> None:
            del self._changing[index_id]
            if not task.cancelled() and (error := task.exception()) is not None:
                _log.error("following the catalog failed", index=index_id, exc_info=error)

        task.add_done_callback(on_done)

    async def _open_and_load(self, name: str, index: CatalogIndex) -> None:
        index_id = index.index_id
        # in the log lines of all tasks of the index, which get the context of this task
        structlog.contextvars.bind_contextvars(index=name)
        try:
            shards = await self._opener.open(
                name, index, CatalogAssignment(index_id, lambda: self._catalog)
            )
        except Exception as error:  # noqa: BLE001 (the other indexes are served)
            self._record_failure(name, index_id, error)
            await self._opener.forget(index_id)
            return
        self._open[index_id], self._names[index_id] = shards, name
        self.indexes.add(index_id, shards.served)
        try:
            await shards.load()
        except Exception as error:  # noqa: BLE001 (the other indexes are served)
            self._record_failure(name, index_id, error)
            directory = index_directory(self._data, index_id)
            if await DaemonWork(partial(_has_shards, directory)).result():
                self.indexes.expect([index_id])
            await self._close_index(index_id)

    def _record_failure(self, name: str, index_id: str, error: Exception) -> None:
        known = isinstance(error, WinnowError | SettingsError)
        _log.error(
            "index could not be opened",
            index=name,
            reason=str(error) if known else repr(error),
            exc_info=None if known else error,
        )
        self._not_before[index_id] = self._clock() + _RETRY_AFTER

    async def _close_index(self, index_id: str) -> None:
        shards = self._open.pop(index_id)
        del self._names[index_id]
        self._close_at.pop(index_id, None)
        shards.start_leaving()
        self.indexes.remove(index_id)
        try:
            await shards.close()
        finally:
            await self._opener.forget(index_id)
        del shards
        collect_closed()
        _log.info("index closed", index_id=index_id)

    async def _delete_dropped(self, catalog: Catalog, now: float) -> None:
        """Begins to delete the files of dropped indexes whose grace time has ended.

        That takes long if the archive of their shards hangs.
        """
        for directory in await DaemonWork(partial(_index_directories, self._data)).result():
            index_id = _index_id(directory)
            if self._may_change(index_id, now) and catalog.is_deleted(index_id, now):
                self._start_change(index_id, self._delete_index(index_id, directory))

    async def _delete_index(self, index_id: str, directory: Path) -> None:
        """Deletes the files of an index. After a failure, it is tried again later."""
        async with self._deleting:
            try:
                delete = partial(_try_delete, directory, self._archive_url, self._warnings)
                is_deleted = await DaemonWork(delete).result()
            finally:
                self._not_before[index_id] = self._clock() + _RETRY_AFTER
        if is_deleted:
            self._warnings.forget(directory)
            _log.info("dropped index deleted", index_id=index_id)


async def _in_daemon_thread(read: Callable[[], Catalog | None]) -> Catalog | None:
    """Reads the catalog. Storage that hangs does not delay the exit of the process."""
    return await DaemonWork(read).result()


def _closing_time(catalog: Catalog, index_id: str, now: float) -> float:
    """Returns when an open index is closed that was just found to be dropped or deleted."""
    times = {index.index_id: index.delete_at for index in catalog.indexes.values()}
    return min(now + _LINGER, times.get(index_id) or now)


def _try_delete(directory: Path, archive_url: str, warnings: RepeatedWarnings) -> bool:
    """Deletes an index, with the archives of its shards; returns whether that succeeded."""
    try:
        shards = [each for each in directory.iterdir() if shard_number_of(each.name) is not None]
    except OSError as error:
        warnings.warn("dropped index not deleted", directory, reason=str(error))
        return False
    is_removed = try_remove_archives(shards, archive_url, warnings)
    return is_removed and delete_shard(directory, warnings)


def _has_shards(directory: Path) -> bool:
    """Whether the directory of an index has a shard, as far as is known."""
    try:
        return bool(shards_in(directory))
    except WinnowError:
        return True


def _index_id(directory: Path) -> str:
    """The inverse of `index_directory`."""
    return directory.name.removeprefix("index-")


def _index_directories(data: Path) -> list[Path]:
    """Lists the directories of named indexes; none if the data directory cannot be read."""
    found: list[Path] = []
    with contextlib.suppress(OSError):
        found = sorted(each for each in data.glob("index-*") if not each.name.endswith(".removed"))
    return found
