"""What a node does first if it is to start from a snapshot, and says of it."""

import time
from pathlib import Path

import structlog

from winnow.content_node.snapshots.restoring import pull
from winnow.quoting import shown
from winnow.telemetry.stage import StageClock

_log = structlog.get_logger("content_node")


def pull_shard(url: str, target: Path) -> None:
    """Restores the shard at `url` into `target`, unless it lies there. Takes minutes: in a thread.

    Raises:
        NotFoundError, ArtefactError, UnavailableError: as `content_node.snapshots.restoring.pull`.

    """
    pulled = pull(url, target, _Logged())
    if pulled.restored is not None:
        (part,) = pulled.restored.parts
        name = pulled.restored.snapshot.name
        _log.info("shard restored", url=shown(url), snapshot=name, sequence=part.sequence)
    elif pulled.unreachable:
        _log.warning(
            "the shard is there already and is served; it was not compared with its snapshots",
            url=shown(url),
            reason=pulled.unreachable,
        )
    else:
        _log.info("the shard is there already", url=shown(url), shard=str(target))


class _Logged:
    """Progress as log lines, some seconds apart."""

    def __init__(self) -> None:
        self._stage: StageClock | None = None

    def start(self, stage: str, total: int | None, done: int = 0) -> None:
        self._stage = StageClock(stage, total, done, time.monotonic)
        _log.info(self._stage.opening())

    def advance(self, steps: int) -> None:
        if self._stage is None:
            return
        self._stage.advance(steps)
        if self._stage.due():
            _log.info(self._stage.line())
