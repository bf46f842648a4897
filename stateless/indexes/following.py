"""Follows the catalog: opens new indexes of a front, and closes dropped ones."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import structlog

from winnow.catalog_reader import CATALOG_INTERVAL, CatalogReader, ReadsCatalog
from winnow.deadline import Clock, Sleep
from winnow.domain.catalog import Alias, Catalog, CatalogIndex
from winnow.errors import WinnowError
from winnow.heap import collect_closed
from winnow.stateless.indexes.catalog_choice import CatalogChoice
from winnow.stateless.indexes.front_index import FrontIndex

_log = structlog.get_logger("stateless.indexes")
_RETRY_AFTER = 10.0
"""Seconds after which an index that could not be opened is tried again."""
_LINGER = 30.0
"""Seconds for which a dropped index finishes its running requests."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedIndex:
    """An index that a front has opened."""

    parts: FrontIndex
    tasks: Mapping[str, Callable[[], Coroutine[Any, Any, None]]]
    """Tasks that run while the index is open, by name."""
    wait_until_serving: Callable[[], Awaitable[None]]
    """Waits until shards of the index have been found."""
    close: Callable[[], Awaitable[None]]
    rename: Callable[[str], None] = lambda _: None
    """Exports the metrics of the index under another name."""


class _RunningIndex:
    """An opened index with its running tasks."""

    def __init__(self, name: str, opened: OpenedIndex, group: asyncio.TaskGroup) -> None:
        self._name, self._opened = name, opened
        self.forming = asyncio.ensure_future(opened.wait_until_serving())
        self._tasks = [
            group.create_task(_until_cancelled(name, task, run))
            for task, run in opened.tasks.items()
        ]

    def rename(self, name: str) -> None:
        if name != self._name:
            _log.info("index renamed", before=self._name, name=name)
            self._opened.rename(name)
            self._name = name

    async def close(self) -> None:
        tasks = [self.forming, *self._tasks]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._opened.close()


class CatalogFollower:
    """Keeps the indexes of a front as the catalog says."""

    def __init__(
        self,
        file: ReadsCatalog,
        open_index: Callable[[str, CatalogIndex], Awaitable[OpenedIndex]],
        choice: CatalogChoice,
        *,
        form_timeout: float,
        clock: Clock,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        """Reads nothing yet.

        Args:
            file: the file of the catalog.
            open_index: opens an index by its name and entry.
            choice: gets the open indexes and the current version of the catalog.
            form_timeout: seconds to wait for the shards of an index, before requests get to it
                because the front starts or an alias is switched.
            clock: monotonic clock, in seconds.
            sleep: waits for a number of seconds.

        """
        self._reader, self._open_index, self._choice = CatalogReader(file), open_index, choice
        self._form_timeout, self._clock, self._sleep = form_timeout, clock, sleep
        self._running: dict[str, _RunningIndex] = {}
        """The open indexes by id."""
        self._not_before: dict[str, float] = {}
        """The earliest next attempt to open an index, by id."""
        self._has_catalog = asyncio.Event()
        self._read = Catalog()
        """The last version that was read."""
        self._waiting: dict[str, Alias] = {}
        """The switched aliases that wait for the shards of their indexes, by name."""

    async def wait_until_read(self) -> None:
        """Waits until the catalog was read, and its indexes were found as far as possible."""
        await self._has_catalog.wait()

    async def run(self) -> None:
        """Follows the catalog until this task is cancelled. Then closes all indexes."""
        async with asyncio.TaskGroup() as group:
            try:
                while True:
                    await self.update(group)
                    await self._sleep(CATALOG_INTERVAL)
            finally:
                for index_id in list(self._running):
                    await self._take(index_id).close()

    async def update(self, group: asyncio.TaskGroup) -> None:
        """Reads the catalog once, and applies it. `group` runs the tasks of the indexes."""
        catalog = await self._reader.read()
        if catalog is None:
            return
        wanted = {
            index.index_id: (name, index)
            for name, index in catalog.indexes.items()
            if not index.is_dropped
        }
        for index_id in self._running.keys() & wanted.keys():
            self._running[index_id].rename(wanted[index_id][0])
        for index_id, (name, index) in wanted.items():
            if index_id not in self._running and self._clock() >= self._not_before.get(index_id, 0):
                await self._open(name, index, group)
        self._read = catalog
        if self._choice.catalog is None:
            await self._wait_for_shards(self._running)
        else:
            self._start_switches(catalog, self._choice.catalog, group)
        self._show()
        self._has_catalog.set()
        for index_id in self._running.keys() - wanted.keys():
            group.create_task(self._close_later(self._take(index_id)))

    async def _open(self, name: str, index: CatalogIndex, group: asyncio.TaskGroup) -> None:
        try:
            opened = await self._open_index(name, index)
        except Exception as error:  # noqa: BLE001 (the other indexes are served)
            known = isinstance(error, WinnowError)
            _log.error(
                "index could not be opened",
                index=name,
                reason=str(error) if known else repr(error),
                exc_info=None if known else error,
            )
            self._not_before[index.index_id] = self._clock() + _RETRY_AFTER
            return
        self._running[index.index_id] = _RunningIndex(name, opened, group)
        self._choice.add(index.index_id, opened.parts)

    def _start_switches(self, catalog: Catalog, shown: Catalog, group: asyncio.TaskGroup) -> None:
        """Lets each switched alias wait for the shards of its index; `shown` is in use now."""
        for name, alias in catalog.aliases.items():
            index_id = catalog.indexes[alias.index].index_id
            is_new = alias not in (shown.aliases.get(name), self._waiting.get(name))
            running = self._running.get(index_id)
            if (own := shown.indexes.get(name)) is not None and own.index_id == index_id:
                continue  # it was renamed
            if is_new and running is not None and not running.forming.done():
                self._waiting[name] = alias
                group.create_task(self._switch(name, alias, index_id))

    async def _switch(self, name: str, alias: Alias, index_id: str) -> None:
        """Shows a switched alias once the shards of its index have been found."""
        await self._wait_for_shards([index_id])
        if self._waiting.get(name) == alias:
            del self._waiting[name]
            self._show()

    def _show(self) -> None:
        """Lets requests use the catalog. An alias that waits stands for its earlier index."""
        shown, aliases = self._choice.catalog, dict(self._read.aliases)
        for name, alias in self._waiting.items():
            if shown is None or aliases.get(name) != alias:
                continue
            before = shown.aliases.get(name)
            if before is None:
                del aliases[name]
            elif (
                before.index in self._read.indexes
                and not self._read.indexes[before.index].is_dropped
            ):
                aliases[name] = before
        self._choice.catalog = replace(self._read, aliases=aliases)

    async def _wait_for_shards(self, ids: Iterable[str]) -> None:
        """Waits until shards of these indexes have been found, but not longer than allowed."""
        forming = [self._running[each].forming for each in ids if each in self._running]
        if forming:
            await asyncio.wait(forming, timeout=self._form_timeout)

    def _take(self, index_id: str) -> _RunningIndex:
        self._choice.remove(index_id)
        return self._running.pop(index_id)

    async def _close_later(self, running: _RunningIndex) -> None:
        try:
            await self._sleep(_LINGER)
        finally:
            await running.close()
            del running
            collect_closed()


async def _until_cancelled(
    index: str, task: str, run: Callable[[], Coroutine[Any, Any, None]]
) -> None:
    """Runs a task of an index, whose name is in its log lines.

    If the task ends by itself, the front must end, too.
    """
    structlog.contextvars.bind_contextvars(index=index)
    await run()
    raise WinnowError(f"the background task of {task} ended: restart the front")
