"""Merges a shard from time to time while it is served: a task of the node.

The policy decides, the merge is a child process, and the shard swaps what it serves. A failure is
repeated later and changes nothing of what is served.
"""

import asyncio
import time
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import structlog

from winnow.content_node.daemon_work import DaemonWork
from winnow.content_node.merging.policy import MergePolicy, MergeReason, Pending, retry_after
from winnow.content_node.merging.protocol import Merged
from winnow.content_node.merging.tidying import Cleanup
from winnow.content_node.metrics import MergeMetrics
from winnow.content_node.states.advice import states_command
from winnow.deadline import Clock
from winnow.errors import WinnowError
from winnow.faultpoints import reach

_log = structlog.get_logger("content_node")
_CHECK_EVERY = 1.0
"""Seconds between two checks whether to merge, which only read some counts."""

Base = TypeVar("Base")
Given_contra = TypeVar("Given_contra", contravariant=True)
Sleep = Callable[[float], Awaitable[None]]


class Mergeable(Protocol[Given_contra]):
    """A shard that takes writes, as the merger sees it."""

    @property
    def directory(self) -> Path:
        """The directory of the base that is served."""

    @property
    def merged(self) -> int:
        """The last write in the base."""

    @property
    def sequence(self) -> int:
        """The last write that is durable."""

    def pending(self) -> Pending:
        """The state that decides about a merge."""

    async def swap(self, base: Given_contra) -> None:
        """From now on serves `base` and the writes since."""

    async def trim(self, upto: int) -> None:
        """Removes the writes up to this one, which are in the base, from the log."""


class Merge(Protocol):
    """A merge that may run once."""

    def run(self) -> Merged:
        """Waits for the end of the merge. Raises WinnowError if it failed."""

    def stop(self) -> None:
        """Ends the merge; from any thread."""


class Merger(Generic[Base]):
    """Keeps the unmerged writes of a shard few."""

    def __init__(
        self,
        *,
        shard: Mergeable[Base],
        policy: MergePolicy,
        begin: Callable[[Path, int], Merge],
        open_base: Callable[[Path], Base],
        tidy: Callable[[int], None],
        metrics: MergeMetrics,
        sleep: Sleep = asyncio.sleep,
        clock: Clock = time.monotonic,
    ) -> None:
        """`begin` makes a merge of a base and the log up to a write; `open_base` opens and verifies
        the result; `tidy` removes leftovers once a generation is served.
        """
        self._shard, self._policy, self._metrics = shard, policy, metrics
        self._begin, self._open = begin, open_base
        self._cleanup = Cleanup(shard.trim, tidy, clock)
        self._sleep, self._clock = sleep, clock
        self._one_at_a_time = asyncio.Lock()

    async def run(self) -> None:
        """Merges when it is time, until it is cancelled."""
        await self._cleanup.run(self._shard.merged)  # what a killed node left
        failures = 0
        while True:
            await self._sleep(retry_after(failures) if failures else _CHECK_EVERY)
            failures = failures + 1 if await self._check() is False else 0

    async def merge_now(self) -> None:
        """Merges all writes so far, after a merge that is running; does nothing without writes.

        Raises as `merge`.
        """
        async with self._one_at_a_time:
            if self._shard.pending().writes:
                await self.merge(MergeReason.REQUESTED)

    async def _check(self) -> bool | None:
        async with self._one_at_a_time:
            return await self._merge_if_due()

    async def _merge_if_due(self) -> bool | None:
        """Whether the merge succeeded; None if it was not time for one."""
        try:
            # before a merge, since the merge may need the room that a cleanup makes
            if self._cleanup.due:
                await self._cleanup.run(self._shard.merged)
            pending = self._shard.pending()
            self._metrics.holes.set(pending.dead)
            reason = self._policy.reason(pending)
            if reason is None:
                return None
            with self._metrics.running.track_inprogress():
                await self.merge(reason)
        except WinnowError as error:
            _log.error("merge failed", reason=str(error))
        except Exception:  # noqa: BLE001 (nobody else would notice)
            _log.exception("merge failed")
        else:
            return True
        self._metrics.merges.labels("failed").inc()
        return False

    async def merge(self, reason: MergeReason) -> None:
        """Makes the next generation and serves it.

        Raises WinnowError if that fails; then the shard serves the same base as before.
        """
        started, upto = self._clock(), self._shard.sequence
        _log.info("merge started", upto=upto, reason=reason.value)
        merged = await self._merged(upto)
        base = await DaemonWork(partial(self._open, Path(merged.directory))).result()
        reach("swap.opened")
        await self._shard.swap(base)
        reach("swap.swapped")
        spent = self._clock() - started
        self._metrics.merges.labels("done").inc()
        self._metrics.seconds.observe(spent)
        _log.info(
            "merge finished",
            upto=merged.sequence,
            passages=merged.passages,
            rows=merged.rows,
            seconds=round(spent, 3),
        )
        if merged.without_states:
            _log.warning(
                "passages were left without states by the merge; "
                f"{states_command(Path(merged.directory))} makes them for a split reader",
                reason=merged.without_states,
            )
        await self._cleanup.run(self._shard.merged)

    async def _merged(self, upto: int) -> Merged:
        merge = self._begin(self._shard.directory, upto)
        try:
            return await DaemonWork(merge.run).result()
        finally:
            merge.stop()
