"""Loads heads into the cache. Callers that wait for the same head share one load."""

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
from winnow.heads.async_store import AsyncHeadStore
from winnow.heads.cache import HeadCache, HeadSlot
from winnow.heads.metrics import EncoderGroupMetrics
from winnow.heads.store import HeadRecord
from winnow.heads.swap import VERSION_ERRORS, HeadSwap
from winnow.quoting import quoted

_log = structlog.get_logger("heads")
_DAMAGED = "its files are damaged or do not fit together; see the server's log"
_MAX_LOADING = 1_000
"""Maximum number of heads that load or wait to load. Bounds memory while a store hangs."""
_MAX_FAILURES = 1_000
"""Maximum number of remembered failures. Bounds memory, because callers choose the head ids."""


class _BrokenHeadError(UnavailableError):
    """No version of a head can be loaded. The message names no paths; the log does."""


class HeadLoader:
    """Loads heads into the cache, and remembers recent failures."""

    def __init__(
        self,
        store: AsyncHeadStore,
        cache: HeadCache,
        swap: HeadSwap,
        *,
        clock: Clock,
        metrics: EncoderGroupMetrics,
        failure_seconds: float,
    ) -> None:
        """`failure_seconds`: how long a failure is cached before the store is read again."""
        self._store, self._cache, self._swap = store, cache, swap
        self._clock, self._metrics = clock, metrics
        self._failures = _RecentFailures(failure_seconds, clock)

    async def load(self, head: str, deadline: Deadline, client: str = "") -> HeadSlot:
        """Loads a head if needed; returns its slot, which the caller must release.

        The load continues if its callers are cancelled.

        Raises:
            NotFoundError: there is no such head.
            IdentityError: the head was trained on another encoder.
            OverloadedError: there is no room for the head now.
            DeadlineExceededError: the head was not loaded in time.
            UnavailableError: the head is broken, or the store cannot be reached.

        """
        slot = self._cache.find(head) or self._add_slot(head)
        self._cache.hold(slot)
        try:
            if slot.head is None:
                await self._wait_for_load(slot, deadline, client)
        except BaseException:
            self._cache.release(slot)
            raise
        return slot

    def _add_slot(self, head: str) -> HeadSlot:
        self._failures.check(head)
        if self._cache.count_slots_without_head() >= _MAX_LOADING:
            raise OverloadedError(f"{_MAX_LOADING} heads already wait to be loaded; try again", 1.0)
        return self._cache.add(head)

    async def _wait_for_load(self, slot: HeadSlot, deadline: Deadline, client: str) -> None:
        if slot.load_task is None:
            slot.load_task = asyncio.create_task(self._load(slot, client))
            slot.load_task.add_done_callback(lambda task: self._end_load(slot, task))
        task = slot.load_task
        done, _ = await asyncio.wait([task], timeout=max(deadline.left(), 0.0))
        if not done:
            raise DeadlineExceededError(
                f"the deadline passed while head {slot.id} was being loaded; try again: the load "
                "continues"
            )
        if task.cancelled() or (task.exception() is None and slot.head is None):
            raise UnavailableError(f"head {slot.id} was not loaded: the server is stopping")
        task.result()

    def _end_load(self, slot: HeadSlot, task: asyncio.Task[None]) -> None:
        slot.load_task = None
        if not task.cancelled():
            task.exception()  # retrieved here, so that asyncio does not warn if no caller waits
        self._cache.remove_if_empty(slot)

    async def _load(self, slot: HeadSlot, client: str) -> None:
        started_at = self._clock()
        try:
            record = await self._read_record(slot, client)
            await self._load_version(slot, record, client)
        except OverloadedError:
            self._metrics.count_load("no_room")
            raise
        except (_BrokenHeadError, NotFoundError, IdentityError) as error:
            self._failures.add(slot.id, error)
            raise
        except UnavailableError as error:
            self._metrics.count_load("unreachable")
            raise UnavailableError(
                f"head {slot.id} is not in memory, and the head store cannot be reached"
            ) from error
        self._metrics.count_load("loaded")
        self._metrics.observe_load(self._clock() - started_at)

    async def _read_record(self, slot: HeadSlot, client: str) -> HeadRecord:
        try:
            record = await self._store.read_record(slot.id, client)
        except NotFoundError as error:
            self._metrics.count_load("unknown")
            raise NotFoundError(f"there is no head {quoted(slot.id)}") from error
        except ArtefactError as error:
            self._metrics.count_load("broken")
            _log.error("head loading failed", head=slot.id, error=str(error))
            raise _BrokenHeadError(f"head {slot.id} cannot be loaded: {_DAMAGED}") from error
        self._cache.set_record(slot, record)
        slot.checked_at = self._clock()
        return record

    async def _load_version(self, slot: HeadSlot, record: HeadRecord, client: str) -> None:
        """Loads the served version, or the previous one if the served version is broken."""
        failures: list[WinnowError] = []
        for version in filter(None, (record.version, record.previous)):
            try:
                await self._swap.swap(slot, version, client)
                return
            except VERSION_ERRORS as error:
                self._swap.record_broken(slot, version, error)
                failures.append(error)
        if isinstance(failures[0], IdentityError):
            raise failures[0]
        raise _BrokenHeadError(
            f"head {slot.id} version {record.version} cannot be loaded: {_DAMAGED}"
        ) from failures[0]


class _RecentFailures:
    """The last failure of each head, for a few seconds."""

    def __init__(self, seconds: float, clock: Clock) -> None:
        self._seconds, self._clock = seconds, clock
        self._failures: OrderedDict[str, tuple[float, WinnowError]] = OrderedDict()
        """Expiry (in seconds of the clock) and error, by head id; oldest first."""

    def __len__(self) -> int:
        return len(self._failures)

    def add(self, head: str, error: WinnowError) -> None:
        self._failures.pop(head, None)
        self._failures[head] = (self._clock() + self._seconds, error)
        if len(self._failures) > _MAX_FAILURES:
            self._failures.popitem(last=False)

    def check(self, head: str) -> None:
        """Raises the recent failure of a head, if there is one."""
        expires_at, error = self._failures.get(head, (0.0, None))
        if error is None:
            return
        if self._clock() < expires_at:
            raise error.with_traceback(None)
        del self._failures[head]
