"""Applies heads in this process, as an implementation of `Heads`.

Heads in memory run immediately, one after another in one thread. Heads that must be loaded are
awaited concurrently, so no caller waits for a head that only another caller requested.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from winnow.deadline import Clock, Deadline
from winnow.domain.prediction import Applied, HeadInMemory
from winnow.errors import DeadlineExceededError, IdentityError, OverloadedError, WinnowError
from winnow.heads.async_store import AsyncHeadStore
from winnow.heads.cache import HeadCache, HeadSlot
from winnow.heads.head import Head
from winnow.heads.heads import States
from winnow.heads.loader import HeadLoader
from winnow.heads.metrics import EncoderGroupMetrics
from winnow.heads.refresh import REFRESH_SECONDS
from winnow.heads.run import EncoderThreadRun, HeadResult, HeadRun
from winnow.heads.store import HeadStore
from winnow.heads.swap import HeadSwap, VersionWatcher
from winnow.inference.fair_threads import FairThreads, call_on_event_loop

_MAX_ENCODER_THREAD_HEADS = 16
"""Maximum number of heads that run in the encoder's thread; together they take about as long as
the encoder.
"""
_RETRY_BROKEN_REFRESHES = 15
"""Number of refresh intervals after which a broken version is tried again."""


class LocalHeads:
    """The heads of one encoder group, loaded from a store on first use under a memory budget."""

    def __init__(
        self,
        store: HeadStore,
        *,
        fingerprint: str,
        width: int | None,
        budget_bytes: int,
        threads: FairThreads,
        metrics: EncoderGroupMetrics,
        clock: Clock = time.monotonic,
        refresh: float = REFRESH_SECONDS,
    ) -> None:
        """Loads nothing yet.

        Args:
            store: the store of the heads.
            fingerprint: fingerprint of the encoder that computes the token states.
            width: number of values of a token state; None to take it from the first states.
            budget_bytes: memory for heads. During a swap, only the larger version is counted.
            threads: threads that run heads; the caller closes them.
            metrics: metrics of the encoder group.
            clock: monotonic, in seconds.
            refresh: seconds between checks for a new version of a head.

        """
        self._threads, self._metrics = threads, metrics
        self.budget_bytes = budget_bytes
        self._store = async_store = AsyncHeadStore(store, fingerprint, width)
        self._cache = cache = HeadCache(budget_bytes, metrics)
        retry_after = refresh * _RETRY_BROKEN_REFRESHES
        swap = HeadSwap(async_store, cache, clock=clock, metrics=metrics, retry_after=retry_after)
        self._loader = HeadLoader(
            async_store, cache, swap, clock=clock, metrics=metrics, failure_seconds=refresh
        )
        self._watcher = VersionWatcher(
            async_store, cache, swap, clock=clock, metrics=metrics, refresh=refresh
        )

    async def apply(
        self, states: States, head_ids: Sequence[str], deadline: Deadline, client: str = ""
    ) -> list[Applied]:
        """Applies heads; see `Heads.apply`.

        Raises IdentityError if the shape of the states does not fit the encoder of these heads.
        """
        self._check_shape(states)
        slots = {head: self._hold_cached(head) for head in dict.fromkeys(head_ids)}
        cached = [slot for slot in slots.values() if slot is not None]
        missing = [head for head, slot in slots.items() if slot is None]
        loads = [
            asyncio.create_task(self._load_and_run(states, head, deadline, client))
            for head in missing
        ]
        try:
            results = await self._run(states, cached, deadline, client) if cached else []
            results += [await load for load in loads]
        finally:
            for load in loads:
                load.cancel()
        if len(results) > 1:
            results = [
                await self._retry_if_no_room(states, each, deadline, client) for each in results
            ]
        applied = {each.head: each for each in results}
        for each in results:
            self._metrics.count_applied("ok" if each.failure is None else "failed")
        return [applied[head] for head in head_ids]

    @contextlib.contextmanager
    def begin_encoder_thread_run(
        self, head_ids: Sequence[str], deadline: Deadline
    ) -> Iterator[EncoderThreadRun]:
        """Prepares a run of requested heads in the encoder's thread.

        The run includes the first `_MAX_ENCODER_THREAD_HEADS` heads that are in memory. Use `apply`
        for the other heads.
        """
        cached = [slot for head in head_ids if (slot := self._cache.find(head)) and slot.head]
        slots = cached[:_MAX_ENCODER_THREAD_HEADS]
        for slot in slots:
            self._cache.hold(slot)
            self._watcher.check(slot)
        heads = _heads(slots)
        run = HeadRun(heads, deadline, self._release_callback(slots))
        try:
            yield EncoderThreadRun(run, lambda: self._finished_results(slots, heads, run.stop()))
        finally:
            run.stop()

    def cached(self) -> list[HeadInMemory]:
        """Returns the heads in memory, by id."""
        return self._cache.heads()

    def close(self) -> None:
        """Cancels loads and version checks."""
        for slot in self._cache.slots():
            for task in filter(None, (slot.load_task, slot.check_task)):
                task.cancel()
        self._store.close()

    def _check_shape(self, states: States) -> None:
        width = self._store.width
        if states.ndim != 2 or len(states) < 2 or states.shape[1] != (width or states.shape[1]):  # noqa: PLR2004
            raise IdentityError(
                f"states of shape {list(states.shape)} do not fit the encoder of these heads, "
                f"whose states have the shape [tokens + 2, {width or 'width'}]"
            )
        self._store.width = states.shape[1]

    def _hold_cached(self, head: str) -> HeadSlot | None:
        """Holds and returns the slot of a head in memory; None if the head must be loaded."""
        slot = self._cache.find(head)
        if slot is None or slot.head is None:
            self._metrics.count_lookup("miss")
            return None
        self._metrics.count_lookup("hit")
        self._cache.hold(slot)
        self._watcher.check(slot)
        return slot

    async def _load_and_run(
        self, states: States, head: str, deadline: Deadline, client: str
    ) -> Applied:
        try:
            slot = await self._loader.load(head, deadline, client)
        except WinnowError as error:
            return Applied(head=head, version=0, failure=error)
        (applied,) = await self._run(states, [slot], deadline, client)
        return applied

    async def _retry_if_no_room(
        self, states: States, applied: Applied, deadline: Deadline, client: str
    ) -> Applied:
        """Retries a head that had no room, now that the request's other heads are released."""
        if not isinstance(applied.failure, OverloadedError) or deadline.expired():
            return applied
        return await self._load_and_run(states, applied.head, deadline, client)

    async def _run(
        self, states: States, slots: Sequence[HeadSlot], deadline: Deadline, client: str
    ) -> list[Applied]:
        """Runs held heads, and releases them when no thread uses them."""
        heads = _heads(slots)
        started_at = time.perf_counter()
        run = HeadRun(heads, deadline, self._release_callback(slots))
        try:
            async with asyncio.timeout(max(deadline.left(), 0.0)):
                await self._threads.run(client, partial(run.run, states))
        except TimeoutError:
            pass
        finally:
            results = run.stop()
        self._metrics.observe_run(time.perf_counter() - started_at)
        return [
            _to_applied(slot, head, result or _late_error(slot))
            for slot, head, result in zip(slots, heads, results, strict=True)
        ]

    def _finished_results(
        self, slots: Sequence[HeadSlot], heads: Sequence[Head], results: Sequence[HeadResult | None]
    ) -> list[Applied]:
        """Returns and counts the results of heads that ran in the encoder's thread."""
        finished = [
            _to_applied(slot, head, result)
            for slot, head, result in zip(slots, heads, results, strict=True)
            if result is not None
        ]
        for each in finished:
            self._metrics.count_lookup("hit")
            self._metrics.count_applied("ok" if each.failure is None else "failed")
        return finished

    def _release_callback(self, slots: Sequence[HeadSlot]) -> Callable[[], None]:
        """Returns a thread-safe function that releases held heads."""
        return partial(call_on_event_loop, asyncio.get_running_loop(), self._release, slots)

    def _release(self, slots: Sequence[HeadSlot]) -> None:
        for slot in slots:
            self._cache.release(slot)


def _heads(slots: Sequence[HeadSlot]) -> list[Head]:
    return [slot.head for slot in slots if slot.head is not None]


def _late_error(slot: HeadSlot) -> WinnowError:
    return DeadlineExceededError(f"the deadline passed before head {slot.id} was applied")


def _to_applied(slot: HeadSlot, head: Head, result: HeadResult) -> Applied:
    if isinstance(result, WinnowError):
        return Applied(head=slot.id, version=0, failure=result, moved_to=slot.moved_to)
    return Applied(
        head=slot.id, version=head.manifest.version, prediction=result, moved_to=slot.moved_to
    )
