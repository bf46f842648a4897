"""What a node does when the files of its shard change on disk."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from winnow.content_node.loading import Loading
from winnow.content_node.metrics import ShardMetrics
from winnow.content_node.served_shard import ServedShard
from winnow.content_node.shard.changes import Change, change_to_report

_log = structlog.get_logger("content_node")
Sleep = Callable[[float], Awaitable[None]]


class ServingStatus:
    """Reports NOT_SERVING, with the reason, while the shard on disk is not the one that is
    served.
    """

    def __init__(
        self,
        shard: ServedShard,
        set_serving: Callable[[bool], Awaitable[None]],
        metrics: ShardMetrics,
    ) -> None:
        """`set_serving` sets the health of the process for this shard."""
        self._shard, self._set_serving, self._metrics = shard, set_serving, metrics
        self._files: Change | None = None
        self._permanent: Change | None = None

    async def files_changed(self, change: Change | None) -> None:
        """Reports a change of the files; None if they are again as they were loaded.

        Open files can still be read, unless they were overwritten. Fronts take the node for gone,
        and calls in hand are answered.
        """
        if change is None:
            _log.info("shard files restored")
        else:
            _log.error("shard files changed on disk", reason=change.reason)
        self._files = change
        await self._update()

    async def stopped_following(self, change: Change) -> None:
        """Reports for good that the shard is no longer kept up to date."""
        _log.error("shard no longer kept up to date", reason=change.reason)
        self._permanent = change
        await self._update()

    async def _update(self) -> None:
        change = self._files or self._permanent
        self._shard.withdraw(change.reason if change else "")
        if change is not None and not change.readable:
            self._shard.fail(change.reason)
        self._metrics.changed.set(change is not None)
        self._metrics.ready.set(change is None)
        await self._set_serving(change is None)


async def watch(
    look: Callable[[], Change | None],
    report: Callable[[Change | None], Awaitable[None]],
    every: float,
    sleep: Sleep = asyncio.sleep,
) -> None:
    """Reports every change, and None when the files are restored; runs until it is cancelled.

    `look` is called each `every` seconds in its own thread, so a file system that hangs blocks
    neither the event loop nor the end of the process. An error of `look` is reported as a change. A
    report that failed is repeated after the next look.
    """
    reported: Change | None = None
    while True:
        await sleep(every)
        try:
            found = await Loading(look).result()
        except Exception as error:  # noqa: BLE001 (nobody else would notice)
            found = Change(f"the files of the shard cannot be read: {error!r}", readable=True)
        if (now := change_to_report(reported, found)) != reported:
            try:
                await report(now)
            except Exception:  # noqa: BLE001 (repeated after the next look)
                _log.exception("report of changed shard files failed")
            else:
                reported = now
