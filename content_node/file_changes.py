"""Watches the files of a served shard, and updates its health when they change on disk."""

import asyncio
from collections.abc import Awaitable, Callable

import structlog

from winnow.content_node.daemon_work import DaemonWork
from winnow.content_node.metrics import ShardMetrics
from winnow.content_node.served_shard import ServedShard
from winnow.content_node.shard.changes import FileChange, change_to_report
from winnow.deadline import Sleep

_log = structlog.get_logger("content_node")


class ShardHealth:
    """Reports NOT_SERVING, with the reason, while the served shard differs from the one on disk."""

    def __init__(
        self,
        shard: ServedShard,
        set_serving: Callable[[bool], Awaitable[None]],
        metrics: ShardMetrics,
    ) -> None:
        """`set_serving` sets the health of this shard in the health service."""
        self._shard, self._set_serving, self._metrics = shard, set_serving, metrics
        self._file_change: FileChange | None = None
        self._permanent_change: FileChange | None = None

    async def files_changed(self, change: FileChange | None) -> None:
        """Handles a change of the files; `change` is None once they are restored.

        Fronts send no new calls to a changed shard. Running calls still read the open files, unless
        these were overwritten.
        """
        if change is None:
            _log.info("shard files restored")
        else:
            _log.error("shard files changed on disk", reason=change.reason)
        self._file_change = change
        await self._update_health()

    async def files_closed(self) -> None:
        """Forgets a change of files that are not served any more: other files will be."""
        if self._file_change is not None:
            await self.files_changed(None)

    async def stopped_following(self, change: FileChange) -> None:
        """Withdraws the shard for good, because it no longer follows its journal or its owner."""
        self._permanent_change = change
        await self._update_health()

    async def _update_health(self) -> None:
        change = self._file_change or self._permanent_change
        self._shard.withdraw(change.reason if change else "")
        if change is not None and not change.readable:
            self._shard.fail(change.reason)
        self._metrics.changed.set(change is not None)
        self._metrics.ready.set(change is None)
        await self._set_serving(change is None)


async def watch_changes(
    check: Callable[[], FileChange | None],
    report: Callable[[FileChange | None], Awaitable[None]],
    interval: float,
    sleep: Sleep = asyncio.sleep,
) -> None:
    """Checks files periodically and reports every change; runs until it is cancelled.

    `check` runs every `interval` seconds in a separate thread, so a file system that hangs blocks
    neither the event loop nor the exit. An error of `check` is reported as a change. `report` gets
    None when the files are restored. A failed report is repeated after the next check.
    """
    reported: FileChange | None = None
    while True:
        await sleep(interval)
        try:
            current = await DaemonWork(check).result()
        except Exception as error:  # noqa: BLE001 (reported as a change)
            current = FileChange(f"the files of the shard cannot be read: {error!r}", readable=True)
        if (change := change_to_report(reported, current)) != reported:
            try:
                await report(change)
            except Exception:  # noqa: BLE001 (repeated after the next check)
                _log.exception("changed shard files could not be reported")
            else:
                reported = change
