"""Heads in this process, as `Heads`.

Heads that are in memory run at once, all heads of a text in one run. A head that has to be loaded
first is awaited beside them, so that no caller waits for another caller's head.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from winnow.deadline import Clock, Deadline
from winnow.domain.prediction import Applied
from winnow.errors import DeadlineExceededError, IdentityError, OverloadedError, WinnowError
from winnow.heads.cache import CachedHead, HeadCache, HeadSlot
from winnow.heads.head import Head
from winnow.heads.heads import States
from winnow.heads.loader import HeadLoader
from winnow.heads.loading import HeadLoading
from winnow.heads.metrics import EncoderGroupMetrics
from winnow.heads.run import EncoderThreadRun, HeadResult, HeadRun
from winnow.heads.store import HeadStore
from winnow.heads.swap import HeadSwap, VersionWatcher
from winnow.inference.fair_threads import FairThreads, tell

REFRESH = 2.0
"""Seconds between two checks of which version of a head is served."""
_ENCODER_THREAD_HEADS = 16
"""Heads that run in one turn of the encoder: together they take about as long as its run."""
_BROKEN_REFRESHES = 15
"""Refreshes after which a broken version is tried again."""


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
        refresh: float = REFRESH,
    ) -> None:
        """Runs heads in `threads`, which the caller closes.

        Args:
            store: of the heads.
            fingerprint: of the encoder whose states will come.
            width: of these states; None if the first states tell it.
            budget_bytes: memory of heads. While one is replaced, both versions are open.
            threads: where heads run.
            metrics: of the encoder group.
            clock: monotonic, in seconds.
            refresh: seconds for which the store's answers are believed.

        """
        self._threads, self._metrics = threads, metrics
        self.budget_bytes = budget_bytes
        self._loader = loader = HeadLoader(store, fingerprint, width)
        self._cache = cache = HeadCache(budget_bytes, metrics)
        retry_after = refresh * _BROKEN_REFRESHES
        swap = HeadSwap(loader, cache, clock=clock, metrics=metrics, retry_after=retry_after)
        self._loading = HeadLoading(
            loader, cache, swap, clock=clock, metrics=metrics, failure_seconds=refresh
        )
        self._watcher = VersionWatcher(
            loader, cache, swap, clock=clock, metrics=metrics, refresh=refresh
        )

    async def apply(
        self, states: States, head_ids: Sequence[str], deadline: Deadline, client: str = ""
    ) -> list[Applied]:
        """Applies heads as `Heads.apply`. A head that is late fails; the others do not.

        Raises:
            IdentityError: the states do not fit the encoder of these heads.

        """
        self._check(states)
        slots = {head: self._hold(head) for head in dict.fromkeys(head_ids)}
        warm = [slot for slot in slots.values() if slot is not None]
        cold = [head for head, slot in slots.items() if slot is None]
        loads = [
            asyncio.create_task(self._load_and_run(states, head, deadline, client)) for head in cold
        ]
        try:
            found = await self._run(states, warm, deadline, client) if warm else []
            found += [await load for load in loads]
        finally:
            for load in loads:
                load.cancel()
        if len(found) > 1:
            found = [await self._again_if_no_room(states, each, deadline, client) for each in found]
        applied = {each.head: each for each in found}
        for each in found:
            self._metrics.applied("ok" if each.failure is None else "failed")
        return [applied[head] for head in head_ids]

    @contextlib.contextmanager
    def begin_encoder_thread_run(
        self, head_ids: Sequence[str], deadline: Deadline
    ) -> Iterator[EncoderThreadRun]:
        """Begins a run of the first few of these heads that are in memory."""
        found = [slot for head in head_ids if (slot := self._cache.find(head)) and slot.head]
        slots = found[:_ENCODER_THREAD_HEADS]
        for slot in slots:
            self._cache.hold(slot)
            self._watcher.check(slot)
        heads = _heads(slots)
        run = HeadRun(heads, deadline, self._releasing(slots))
        try:
            yield EncoderThreadRun(run, lambda: self._done(slots, heads, run.stop()))
        finally:
            run.stop()

    def cached(self) -> list[CachedHead]:
        """Returns the heads in memory, by id."""
        return self._cache.heads()

    def close(self) -> None:
        """Cancels loads and checks."""
        for slot in self._cache.slots():
            for task in filter(None, (slot.loading, slot.checking)):
                task.cancel()
        self._loader.close()

    def _check(self, states: States) -> None:
        width = self._loader.width
        if states.ndim != 2 or len(states) < 2 or states.shape[1] != (width or states.shape[1]):  # noqa: PLR2004
            raise IdentityError(
                f"states of shape {list(states.shape)} are not of the encoder of these heads, "
                f"which gives [tokens + 2, {width or 'width'}]"
            )
        self._loader.width = states.shape[1]

    def _hold(self, head: str) -> HeadSlot | None:
        """Returns the slot of a head in memory, held; None if the head has to be loaded."""
        slot = self._cache.find(head)
        if slot is None or slot.head is None:
            self._metrics.looked_up("miss")
            return None
        self._metrics.looked_up("hit")
        self._cache.hold(slot)
        self._watcher.check(slot)
        return slot

    async def _load_and_run(
        self, states: States, head: str, deadline: Deadline, client: str
    ) -> Applied:
        try:
            slot = await self._loading.load(head, deadline, client)
        except WinnowError as error:
            return Applied(head=head, version=0, failure=error)
        (applied,) = await self._run(states, [slot], deadline, client)
        return applied

    async def _again_if_no_room(
        self, states: States, each: Applied, deadline: Deadline, client: str
    ) -> Applied:
        """Applies a head again that had no room: the request's other heads are done."""
        if not isinstance(each.failure, OverloadedError) or deadline.expired():
            return each
        return await self._load_and_run(states, each.head, deadline, client)

    async def _run(
        self, states: States, slots: Sequence[HeadSlot], deadline: Deadline, client: str
    ) -> list[Applied]:
        """Runs heads that are held, and releases them when no thread uses them any more."""
        heads = _heads(slots)
        began = time.perf_counter()
        run = HeadRun(heads, deadline, self._releasing(slots))
        try:
            async with asyncio.timeout(max(deadline.left(), 0.0)):
                await self._threads.run(client, partial(run.run, states))
        except TimeoutError:
            pass
        finally:
            results = run.stop()
        self._metrics.ran(time.perf_counter() - began)
        return [
            _applied(slot, head, result or _late(slot))
            for slot, head, result in zip(slots, heads, results, strict=True)
        ]

    def _done(
        self, slots: Sequence[HeadSlot], heads: Sequence[Head], results: Sequence[HeadResult | None]
    ) -> list[Applied]:
        """Returns the heads that were run in the thread that encodes."""
        done = [
            _applied(slot, head, result)
            for slot, head, result in zip(slots, heads, results, strict=True)
            if result is not None
        ]
        for each in done:
            self._metrics.looked_up("hit")
            self._metrics.applied("ok" if each.failure is None else "failed")
        return done

    def _releasing(self, slots: Sequence[HeadSlot]) -> Callable[[], None]:
        """Returns a function that releases held heads; any thread may call it."""
        return partial(tell, asyncio.get_running_loop(), self._release, slots)

    def _release(self, slots: Sequence[HeadSlot]) -> None:
        for slot in slots:
            self._cache.release(slot)


def _heads(slots: Sequence[HeadSlot]) -> list[Head]:
    return [slot.head for slot in slots if slot.head is not None]


def _late(slot: HeadSlot) -> WinnowError:
    return DeadlineExceededError(f"the deadline passed before head {slot.id} was applied")


def _applied(slot: HeadSlot, head: Head, result: HeadResult) -> Applied:
    if isinstance(result, WinnowError):
        return Applied(head=slot.id, version=0, failure=result, moved_to=slot.moved_to)
    return Applied(
        head=slot.id, version=head.manifest.version, prediction=result, moved_to=slot.moved_to
    )
