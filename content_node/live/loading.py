"""Opening a shard that may have been written to: a base, and the log of what came after."""

from collections.abc import Callable
from pathlib import Path

from winnow.content_node.live.entry import Logged
from winnow.content_node.live.limits import WriteLimits
from winnow.content_node.live.log import WriteLog
from winnow.content_node.live.opening import expect_base, open_log
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.live.state import LiveState
from winnow.content_node.live.tally import WordTally
from winnow.content_node.metrics import WriteMetrics
from winnow.content_node.shard.stored_segment import StoredSegment

_CHUNK = 8_000
"""Writes that are applied at a time, as one segment."""


def open_live(
    directory: Path,
    open_base: Callable[[int], StoredSegment],
    limits: Callable[[StoredSegment], WriteLimits],
    metrics: WriteMetrics,
    *,
    feeding: bool,
) -> LiveShard:
    """Opens the log in a shard's `directory`, and applies to a base what came after it.

    `open_base` is told which writes the log has not any more. Takes about a second for 20 000
    writes: not on an event loop. Writes nothing.

    Raises:
        ArtefactError: the log is damaged, another node holds it, or it is not that of the base.

    """
    replay = _Replay(open_base)
    log = open_log(directory, replay.begin, feeding=feeding)
    try:
        state = replay.done(log)
        expect_base(state.base.manifest, directory, log.log_id, log.trimmed, log.last)
        return LiveShard(state, replay.words, log, limits(state.base), metrics)
    except BaseException:
        log.close()
        raise


class _Replay:
    """Takes the writes of a log one by one, and applies many at a time."""

    def __init__(self, open_base: Callable[[int], StoredSegment]) -> None:
        self._open = open_base
        self._state: LiveState | None = None
        self._some: list[Logged] = []
        self.words = WordTally()

    def begin(self, trimmed: int) -> Callable[[Logged], None]:
        """Opens the base to which the writes after a trimmed one are applied."""
        base = self._open(trimmed)
        self._state = LiveState(base, base.manifest.log_id)
        return self.take

    def take(self, write: Logged) -> None:
        """The next write."""
        self.words.count(write)
        self._some.append(write)
        if len(self._some) == _CHUNK:
            self._apply()

    def done(self, log: WriteLog) -> LiveState:
        """Base and log; the words of what was trimmed are counted now, too."""
        if self._state is None:
            self.begin(0)
        assert self._state is not None
        self._state.apply(self._some)
        self._state.follow(log.log_id)
        self.words.add(log.trimmed_words.changes(log.trimmed))
        return self._state

    def _apply(self) -> None:
        assert self._state is not None
        self._state.apply(self._some)
        self._some = []
