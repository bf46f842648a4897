"""Heads in this process, as `Heads`.

Heads that are in memory are run at once, all heads of a text in one piece of work; a head that has
to be loaded first is waited for beside them, so that nobody waits for another one's head.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from winnow.deadline import Clock, Deadline
from winnow.domain.prediction import Applied
from winnow.errors import DeadlineExceededError, IdentityError, OverloadedError, WinnowError
from winnow.heads.ahead import Ahead
from winnow.heads.failures import RecentFailures
from winnow.heads.head import Head
from winnow.heads.heads import States
from winnow.heads.loader import HeadLoader
from winnow.heads.loads import Loads
from winnow.heads.looks import Looks
from winnow.heads.metrics import RingMetrics
from winnow.heads.piece import Piece, Result
from winnow.heads.placing import Placing
from winnow.heads.reach import Reach
from winnow.heads.shelf import Shelf
from winnow.heads.slot import Slot, WarmHead
from winnow.heads.store import HeadStore
from winnow.inference.fair_threads import FairThreads, tell

REFRESH = 2.0
"""Seconds between two looks at which version of a head is served."""
_AHEAD = 16
"""Heads that are run in one turn of the encoder: together they take about as long as its run."""
_PATIENCE = 15
"""A broken version is tried again after so many times as long."""


class WarmHeads:
    """The heads of one ring, loaded from a store on first use under a budget of memory."""

    def __init__(
        self,
        store: HeadStore,
        fingerprint: str,
        width: int | None,
        budget_bytes: int,
        threads: FairThreads,
        metrics: RingMetrics,
        clock: Clock = time.monotonic,
        refresh: float = REFRESH,
    ) -> None:
        """Runs heads in `threads`, which whoever made them closes.

        Args:
            store: of the heads.
            fingerprint: of the encoder whose states will come.
            width: of these states; None where it is known only once some come.
            budget_bytes: what heads in memory may take. While one is replaced, both are open.
            threads: where heads are run.
            metrics: of the ring.
            clock: monotonic, in seconds.
            refresh: seconds for which the store is believed.

        """
        self._threads, self._metrics = threads, metrics
        self.budget_bytes = budget_bytes
        self._loader = loader = HeadLoader(store, fingerprint, width)
        self._shelf = shelf = Shelf(budget_bytes, metrics)
        placing = Placing(loader, shelf, clock, metrics, refresh * _PATIENCE)
        failures = RecentFailures(refresh, clock)
        reach = Reach()
        self._loads = Loads(loader, shelf, placing, failures, clock, metrics, reach)
        self._looks = Looks(loader, shelf, placing, clock, metrics, reach, refresh)

    async def apply(
        self, states: States, head_ids: Sequence[str], deadline: Deadline, client: str = ""
    ) -> list[Applied]:
        """As `Heads.apply`. What is not done at the deadline fails; the rest is returned.

        Raises:
            IdentityError: the states are not of the encoder of these heads.

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
            found = [await self._in_turn(states, each, deadline, client) for each in found]
        applied = {each.head: each for each in found}
        for each in found:
            self._metrics.applied("ok" if each.failure is None else "failed")
        return [applied[head] for head in head_ids]

    @contextlib.contextmanager
    def ahead(self, head_ids: Sequence[str], deadline: Deadline) -> Iterator[Ahead]:
        """The first few of these heads that are in memory, to be run where a text is encoded."""
        found = [slot for head in head_ids if (slot := self._shelf.find(head)) and slot.head]
        slots = found[:_AHEAD]
        for slot in slots:
            self._shelf.hold(slot)
            self._looks.look(slot)
        heads = _heads(slots)
        piece = Piece(heads, deadline, self._releasing(slots))
        ahead = Ahead(piece, lambda: self._done(slots, heads, piece.stop()))
        try:
            yield ahead
        finally:
            piece.stop()

    def warm(self) -> list[WarmHead]:
        """The heads in memory, by id."""
        return self._shelf.warm()

    def close(self) -> None:
        """Ends what is being loaded."""
        for slot in self._shelf.slots():
            for task in filter(None, (slot.loading, slot.looking)):
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

    def _hold(self, head: str) -> Slot | None:
        """The slot of a head that is in memory, which stays there until it is released."""
        slot = self._shelf.find(head)
        if slot is None or slot.head is None:
            self._metrics.looked_up("miss")
            return None
        self._metrics.looked_up("hit")
        self._shelf.hold(slot)
        self._looks.look(slot)
        return slot

    async def _load_and_run(
        self, states: States, head: str, deadline: Deadline, client: str
    ) -> Applied:
        try:
            slot = await self._loads.load(head, deadline, client)
        except WinnowError as error:
            return Applied(head, 0, failure=error)
        (applied,) = await self._run(states, [slot], deadline, client)
        return applied

    async def _in_turn(
        self, states: States, each: Applied, deadline: Deadline, client: str
    ) -> Applied:
        """The same head again if there was no room for it: the others of its request have left."""
        if not isinstance(each.failure, OverloadedError) or deadline.expired():
            return each
        return await self._load_and_run(states, each.head, deadline, client)

    async def _run(
        self, states: States, slots: Sequence[Slot], deadline: Deadline, client: str
    ) -> list[Applied]:
        """Runs heads that are held, and has them released when no thread uses them any more."""
        heads = _heads(slots)
        began = time.perf_counter()
        piece = Piece(heads, deadline, self._releasing(slots))
        try:
            async with asyncio.timeout(max(deadline.left(), 0.0)):
                await self._threads.run(client, partial(piece.work, states))
        except TimeoutError:
            pass
        finally:
            results = piece.stop()
        self._metrics.ran(time.perf_counter() - began)
        return [
            _applied(slot, head, result or _late(slot))
            for slot, head, result in zip(slots, heads, results, strict=True)
        ]

    def _done(
        self, slots: Sequence[Slot], heads: Sequence[Head], results: Sequence[Result | None]
    ) -> list[Applied]:
        """What became of heads that were run ahead; of those that were not, nothing."""
        done = [
            _applied(slot, head, result)
            for slot, head, result in zip(slots, heads, results, strict=True)
            if result is not None
        ]
        for each in done:
            self._metrics.looked_up("hit")
            self._metrics.applied("ok" if each.failure is None else "failed")
        return done

    def _releasing(self, slots: Sequence[Slot]) -> Callable[[], None]:
        """Releases heads that are held; may be called in any thread."""
        return partial(tell, asyncio.get_running_loop(), self._release, slots)

    def _release(self, slots: Sequence[Slot]) -> None:
        for slot in slots:
            self._shelf.release(slot)


def _heads(slots: Sequence[Slot]) -> list[Head]:
    return [slot.head for slot in slots if slot.head is not None]


def _late(slot: Slot) -> WinnowError:
    return DeadlineExceededError(f"the deadline passed before head {slot.id} was applied")


def _applied(slot: Slot, head: Head, result: Result) -> Applied:
    if isinstance(result, WinnowError):
        return Applied(slot.id, 0, failure=result, moved_to=slot.moved_to)
    return Applied(slot.id, head.manifest.version, result, moved_to=slot.moved_to)
