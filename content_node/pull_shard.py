"""Restores a node's shard from a snapshot before it is served, and logs the progress."""

import time
from pathlib import Path

import structlog

from winnow.content_node.snapshots.restoring import restore_if_missing
from winnow.quoting import shown
from winnow.telemetry.stage import StageClock

_log = structlog.get_logger("content_node")


def pull_shard(url: str, target: Path) -> None:
    """Restores the shard at `url` into `target`, unless it exists. Takes minutes: use a thread.

    Raises the errors of `content_node.snapshots.restoring.restore_if_missing`.
    """
    pulled = restore_if_missing(url, target, LoggedProgress())
    if pulled.restored is not None:
        (part,) = pulled.restored.parts
        name = pulled.restored.snapshot.name
        _log.info("shard restored", url=shown(url), snapshot=name, sequence=part.sequence)
    elif pulled.unreachable:
        _log.warning(
            "snapshots unreachable; serving the shard on disk without comparing it",
            url=shown(url),
            reason=pulled.unreachable,
        )
    else:
        _log.info("shard already restored", url=shown(url), shard=str(target))


class LoggedProgress:
    """Logs the progress of restoring every few seconds."""

    def __init__(self) -> None:
        self._stage: StageClock | None = None

    def start(self, stage: str, total: int | None, done: int = 0) -> None:
        self._stage = StageClock(stage, total, done, time.monotonic)
        _log.info(self._stage.opening_line())

    def advance(self, steps: int) -> None:
        if self._stage is None:
            return
        self._stage.advance(steps)
        if self._stage.is_due():
            _log.info(self._stage.progress_line())
