"""Background task that merges a shard from time to time while the node serves the shard.

The policy decides when to merge, a child process merges, and the shard replaces its base. After a
failure the shard serves the same base as before, and the merge is retried later.
"""

import asyncio
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import structlog

from winnow.content_node.daemon_work import DaemonWork
from winnow.content_node.merging.policy import MergeBacklog, MergePolicy, MergeReason, retry_after
from winnow.content_node.merging.protocol import Merged
from winnow.content_node.merging.tidying import Cleanup
from winnow.content_node.metrics import MergeMetrics
from winnow.content_node.shard.changes import FileChange
from winnow.deadline import Clock, Sleep
from winnow.errors import UnavailableError, WinnowError
from winnow.faultpoints import reach

_log = structlog.get_logger("content_node")
_CHECK_INTERVAL = 1.0
"""Seconds between two checks whether to merge. A check only reads some counts."""

Base = TypeVar("Base")
Base_contra = TypeVar("Base_contra", contravariant=True)


class Mergeable(Protocol[Base_contra]):
    """A shard that takes writes and can replace its base."""

    @property
    def directory(self) -> Path:
        """The directory of the base that is served."""

    @property
    def merged(self) -> int:
        """The number of the last write that the base holds."""

    @property
    def sequence(self) -> int:
        """The number of the last durable write."""

    def merge_backlog(self) -> MergeBacklog:
        """Returns the unmerged writes and deleted rows, by which the policy decides on a merge."""

    def file_change(self) -> FileChange | None:
        """Returns how the files of the base have changed on disk; None if they have not."""

    async def swap(self, base: Base_contra) -> None:
        """Serves `base` in place of the present base, and applies all later writes to it."""

    async def trim(self, upto: int) -> bool | None:
        """Removes the writes up to `upto`, which are in the base, from the log.

        Returns False if the log keeps some of them for a while.
        """


class Merge(Protocol):
    """A merge that may run once."""

    def run(self) -> Merged:
        """Runs the merge and returns its result. Raises WinnowError if it failed."""

    def stop(self) -> None:
        """Ends the merge; may be called from any thread."""


class Merger(Generic[Base]):
    """Merges the writes of a shard into its base whenever the policy asks for it."""

    def __init__(
        self,
        *,
        shard: Mergeable[Base],
        policy: MergePolicy,
        new_merge: Callable[[Path, int], Merge],
        open_base: Callable[[Path], Base],
        remove_obsolete: Callable[[int], None],
        metrics: MergeMetrics,
        one_at_a_time: asyncio.Lock,
        sleep: Sleep = asyncio.sleep,
        clock: Clock = time.monotonic,
    ) -> None:
        """Prepares to merge `shard`; call `run` to start.

        Args:
            shard: the shard to merge.
            policy: the policy that decides when to merge.
            new_merge: creates a merge, given the directory of the base and the last write to merge.
            open_base: opens and verifies the directory of a merged generation.
            remove_obsolete: removes older generations, given the last write of the served one.
            metrics: metrics of merges.
            one_at_a_time: lock that all shards of a node share, so that one merges at a time.
            sleep: waits for a number of seconds.
            clock: returns the time in seconds.

        """
        self._shard, self._policy, self._metrics = shard, policy, metrics
        self._new_merge, self._open_base = new_merge, open_base
        self._cleanup = Cleanup(shard.trim, remove_obsolete, clock)
        self._sleep, self._clock = sleep, clock
        self._one_at_a_time = one_at_a_time

    async def run(self) -> None:
        """Merges whenever the policy asks for it, until it is cancelled."""
        await self._cleanup.run(self._shard.merged)  # a killed node may have left files
        failures = 0
        while True:
            await self._sleep(retry_after(failures) if failures else _CHECK_INTERVAL)
            async with self._one_at_a_time:
                succeeded = await self._merge_if_due()
            failures = failures + 1 if succeeded is False else 0

    async def merge_now(self) -> None:
        """Waits for a running merge, and then merges all writes so far, if any are unmerged.

        Raises as `merge`.
        """
        async with self._one_at_a_time:
            if self._shard.merge_backlog().writes:
                await self.merge(MergeReason.REQUESTED)

    async def _merge_if_due(self) -> bool | None:
        """Merges if the policy asks for it; returns whether it succeeded, None if not due."""
        try:
            # before a merge, which may need the disk space that a cleanup frees
            if self._cleanup.due:
                await self._cleanup.run(self._shard.merged)
            backlog = self._shard.merge_backlog()
            self._metrics.holes.set(backlog.dead)
            reason = self._policy.merge_reason(backlog)
            if reason is None:
                return None
            with self._metrics.running.track_inprogress():
                await self.merge(reason)
        except WinnowError as error:
            _log.error("merge failed", reason=str(error))
        except Exception:  # noqa: BLE001 (the task has to continue)
            _log.exception("merge failed")
        else:
            return True
        self._metrics.merges.labels("failed").inc()
        return False

    async def merge(self, reason: MergeReason) -> None:
        """Writes the next generation and serves it.

        Raises WinnowError on failure; then the shard serves the same base as before.
        """
        started, upto = self._clock(), self._shard.sequence
        _log.info("merge started", upto=upto, reason=reason.value)
        merged = await self._run_merge(upto)
        base = await DaemonWork(partial(self._open_base, Path(merged.directory))).result()
        reach("swap.opened")
        await self._shard.swap(base)
        reach("swap.swapped")
        seconds = self._clock() - started
        self._metrics.merges.labels("done").inc()
        self._metrics.seconds.observe(seconds)
        _log.info(
            "merge finished",
            upto=merged.sequence,
            passages=merged.passages,
            rows=merged.rows,
            seconds=round(seconds, 3),
        )
        if merged.without_states:
            _log.warning(
                # in one text, because a program that embeds Winnow may show nothing else
                "passages were left without precomputed data by the merge: "
                f"{merged.without_states}",
                directory=merged.directory,
            )
        await self._cleanup.run(self._shard.merged)

    async def _run_merge(self, upto: int) -> Merged:
        merge = self._new_merge(self._shard.directory, upto)
        try:
            return await DaemonWork(partial(self._run_if_unchanged, merge)).result()
        finally:
            merge.stop()

    def _run_if_unchanged(self, merge: Merge) -> Merged:
        # a merge would write into a directory that has taken the place of the served one
        if change := self._shard.file_change():
            raise UnavailableError(f"cannot merge: {change.reason}")
        return merge.run()
