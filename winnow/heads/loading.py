"""Heads that are not in memory: each is loaded once, for all callers that wait for it."""

import asyncio
from collections import OrderedDict

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
from winnow.heads.cache import HeadCache, HeadSlot
from winnow.heads.loader import HeadLoader
from winnow.heads.metrics import EncoderGroupMetrics
from winnow.heads.store import Current
from winnow.heads.swap import BROKEN, HeadSwap
from winnow.quoting import quoted

_log = structlog.get_logger("heads")
_SEE = "its files are damaged or do not fit together; the server's log says more"
_MAX_LOADING = 1_000
"""Heads that load or wait for a load. A store that hangs must not fill the memory with them."""
_MAX_FAILURES = 1_000
"""Failures that are remembered; the ids of their heads come from outside."""


class _BrokenError(UnavailableError):
    """No version of a head can be loaded. Callers see no paths: those are in the log."""


class HeadLoading:
    """Loads heads into the cache."""

    def __init__(
        self,
        loader: HeadLoader,
        cache: HeadCache,
        swap: HeadSwap,
        *,
        clock: Clock,
        metrics: EncoderGroupMetrics,
        failure_seconds: float,
    ) -> None:
        """`failure_seconds`: how long a failure is repeated without asking the store."""
        self._loader, self._cache, self._swap = loader, cache, swap
        self._clock, self._metrics = clock, metrics
        self._failures = _RecentFailures(failure_seconds, clock)

    async def load(self, head: str, deadline: Deadline, client: str = "") -> HeadSlot:
        """Returns the slot of a head, held, once it is loaded. The load outlives its callers.

        Raises:
            NotFoundError: there is no such head.
            IdentityError: it was trained on another encoder.
            OverloadedError: there is no room for it now.
            DeadlineExceededError: it was not loaded in time.
            UnavailableError: it is broken, or the store cannot be reached.

        """
        slot = self._cache.find(head) or self._new(head)
        self._cache.hold(slot)
        try:
            if slot.head is None:
                await self._wait(slot, deadline, client)
        except BaseException:
            self._cache.release(slot)
            raise
        return slot

    def _new(self, head: str) -> HeadSlot:
        self._failures.check(head)
        if self._cache.unloaded() >= _MAX_LOADING:
            raise OverloadedError(f"{_MAX_LOADING} heads wait to be loaded already; try again", 1.0)
        return self._cache.add(head)

    async def _wait(self, slot: HeadSlot, deadline: Deadline, client: str) -> None:
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

    def _ended(self, slot: HeadSlot, task: asyncio.Task[None]) -> None:
        slot.loading = None
        if not task.cancelled():
            task.exception()  # retrieved here, so that asyncio does not warn if no caller waits
        self._cache.tidy(slot)

    async def _load(self, slot: HeadSlot, client: str) -> None:
        began = self._clock()
        try:
            current = await self._current(slot, client)
            await self._fill(slot, current, client)
        except OverloadedError:
            self._metrics.tried("no_room")
            raise
        except (_BrokenError, NotFoundError, IdentityError) as error:
            self._failures.add(slot.id, error)
            raise
        except UnavailableError as error:
            self._metrics.tried("unreachable")
            raise UnavailableError(
                f"head {slot.id} is not in memory, and the head store cannot be reached"
            ) from error
        self._metrics.tried("loaded")
        self._metrics.loaded(self._clock() - began)

    async def _current(self, slot: HeadSlot, client: str) -> Current:
        """Asks the store which version to serve."""
        try:
            current = await self._loader.current(slot.id, client)
        except NotFoundError as error:
            self._metrics.tried("unknown")
            raise NotFoundError(f"there is no head {quoted(slot.id)}") from error
        except ArtefactError as error:
            self._metrics.tried("broken")
            _log.error("a head cannot be loaded", head=slot.id, error=str(error))
            raise _BrokenError(f"head {slot.id} cannot be loaded: {_SEE}") from error
        self._cache.note(slot, current)
        slot.checked = self._clock()
        return current

    async def _fill(self, slot: HeadSlot, current: Current, client: str) -> None:
        """Loads the version to serve, or the one before it if that is broken."""
        failures: list[WinnowError] = []
        for version in filter(None, (current.version, current.previous)):
            try:
                await self._swap.swap(slot, version, client)
                return
            except BROKEN as error:
                self._swap.broke(slot, version, error)
                failures.append(error)
        if isinstance(failures[0], IdentityError):
            raise failures[0]
        raise _BrokenError(
            f"head {slot.id} version {current.version} cannot be loaded: {_SEE}"
        ) from failures[0]


class _RecentFailures:
    """Failures by head, each remembered for a few seconds."""

    def __init__(self, seconds: float, clock: Clock) -> None:
        self._seconds, self._clock = seconds, clock
        self._failures: OrderedDict[str, tuple[float, WinnowError]] = OrderedDict()
        """When each expires, the oldest first."""

    def __len__(self) -> int:
        return len(self._failures)

    def add(self, head: str, error: WinnowError) -> None:
        self._failures.pop(head, None)
        self._failures[head] = (self._clock() + self._seconds, error)
        if len(self._failures) > _MAX_FAILURES:
            self._failures.popitem(last=False)

    def check(self, head: str) -> None:
        """Raises the recent failure of a head, if there is one."""
        until, error = self._failures.get(head, (0.0, None))
        if error is None:
            return
        if self._clock() < until:
            raise error.with_traceback(None)
        del self._failures[head]
