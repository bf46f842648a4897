"""Heads that are not in memory: each is loaded once, for all who wait for it."""

import asyncio

import structlog

from winnow.deadline import Clock, Deadline
from winnow.errors import (
    ArtefactError,
    DeadlineExceededError,
    IdentityError,
    NotFoundError,
    OverloadedError,
    UnavailableError,
    WinnowError,
)
from winnow.heads.failures import RecentFailures
from winnow.heads.loader import HeadLoader
from winnow.heads.metrics import RingMetrics
from winnow.heads.placing import BROKEN, Placing
from winnow.heads.reach import Reach
from winnow.heads.shelf import Shelf
from winnow.heads.slot import Slot
from winnow.heads.store import Current
from winnow.quoting import quoted

_log = structlog.get_logger("heads")
_SEE = "its files are damaged or do not fit together; the server's log says more"
_MOST = 1_000
"""Heads that are loaded or wait for that. A store that hangs must not fill the memory with them."""


class _BrokenError(UnavailableError):
    """What callers are told of a head of which no version can be loaded. No paths: those are for
    the log.
    """


class Loads:
    """Loads heads into the shelf."""

    def __init__(
        self,
        loader: HeadLoader,
        shelf: Shelf,
        placing: Placing,
        failures: RecentFailures,
        clock: Clock,
        metrics: RingMetrics,
        reach: Reach,
    ) -> None:
        self._loader, self._shelf, self._placing = loader, shelf, placing
        self._failures, self._clock, self._metrics = failures, clock, metrics
        self._reach = reach

    async def load(self, head: str, deadline: Deadline, client: str = "") -> Slot:
        """The slot of a head, held, once the head is in it. Its load outlives whoever waits.

        Raises:
            NotFoundError: there is no such head.
            IdentityError: it is of another encoder.
            OverloadedError: there is no room for it now.
            DeadlineExceededError: it was not there in time.
            UnavailableError: it is broken, or the store cannot be reached.

        """
        slot = self._shelf.find(head) or self._new(head)
        self._shelf.hold(slot)
        try:
            if slot.head is None:
                await self._wait(slot, deadline, client)
        except BaseException:
            self._shelf.release(slot)
            raise
        return slot

    def _new(self, head: str) -> Slot:
        self._failures.check(head)
        if self._shelf.unloaded() >= _MOST:
            raise OverloadedError(f"{_MOST} heads wait to be loaded already; try again", 1.0)
        return self._shelf.add(head)

    async def _wait(self, slot: Slot, deadline: Deadline, client: str) -> None:
        if slot.loading is None:
            slot.loading = asyncio.create_task(self._load(slot, client))
            slot.loading.add_done_callback(lambda task: self._ended(slot, task))
        loading = slot.loading
        done, _ = await asyncio.wait([loading], timeout=max(deadline.left(), 0.0))
        if not done:
            raise DeadlineExceededError(
                f"head {slot.id} was not in memory, and the deadline passed before it was loaded; "
                "it may be there when you try again"
            )
        if loading.cancelled() or (loading.exception() is None and slot.head is None):
            raise UnavailableError(f"head {slot.id} was not loaded: the server is stopping")
        loading.result()

    def _ended(self, slot: Slot, task: asyncio.Task[None]) -> None:
        slot.loading = None
        if not task.cancelled():
            task.exception()  # whoever waited was told; perhaps nobody did
        self._shelf.tidy(slot)

    async def _load(self, slot: Slot, client: str) -> None:
        began = self._clock()
        try:
            current = await self._current(slot, client)
            await self._put(slot, current, client)
        except OverloadedError:
            self._metrics.tried("no_room")
            raise
        except (_BrokenError, NotFoundError, IdentityError) as error:
            self._failures.add(slot.id, error)
            raise
        except UnavailableError as error:
            self._metrics.tried("unreachable")
            self._reach.lost(error)
            raise UnavailableError(
                f"head {slot.id} is not in memory, and the head store cannot be reached"
            ) from error
        self._metrics.tried("loaded")
        self._metrics.loaded(self._clock() - began)

    async def _current(self, slot: Slot, client: str) -> Current:
        """Which version to serve, as the store says it now."""
        try:
            current = await self._loader.current(slot.id, client)
        except NotFoundError as error:
            self._metrics.tried("unknown")
            raise NotFoundError(f"there is no head {quoted(slot.id)}") from error
        except ArtefactError as error:
            self._metrics.tried("broken")
            _log.error("a head cannot be loaded", head=slot.id, error=str(error))
            raise _BrokenError(f"head {slot.id} cannot be loaded: {_SEE}") from error
        self._reach.found()
        self._shelf.note(slot, current)
        slot.looked = self._clock()
        return current

    async def _put(self, slot: Slot, current: Current, client: str) -> None:
        """Loads the version to serve, or the one before it if that is broken."""
        failures: list[WinnowError] = []
        for version in filter(None, (current.version, current.previous)):
            try:
                await self._placing.put(slot, version, client)
                return
            except BROKEN as error:
                self._placing.broke(slot, version, error)
                failures.append(error)
        if isinstance(failures[0], IdentityError):
            raise failures[0]
        raise _BrokenError(
            f"head {slot.id} version {current.version} cannot be loaded: {_SEE}"
        ) from failures[0]
