"""Opening a shard that may have been written to: a base, and the log of later writes."""

from collections.abc import Callable
from pathlib import Path

from winnow.content_node.live.entry import Logged
from winnow.content_node.live.limits import WriteLimits
from winnow.content_node.live.opening import expect_base, open_log
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.live.state import LiveState
from winnow.content_node.live.word_counts import WordTally
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
    """Opens the log in a shard's `directory`, and applies its later writes to a base.

    `open_base` gets the number of the last write that was trimmed from the log. Takes about a
    second for 20 000 writes: not for the event loop. Writes nothing.

    Raises:
        ArtefactError: the log is damaged, another node holds it, or it is not that of the base.

    """
    replay = _Replay(open_base)
    log = open_log(directory, replay.begin, feeding=feeding)
    try:
        state = replay.done()
        state.follow(log.log_id)
        replay.words.add(log.trimmed_words.changes(log.trimmed))
        expect_base(state.base.manifest, directory, log.log_id, log.trimmed, log.last)
        return LiveShard(
            state=state, words=replay.words, log=log, limits=limits(state.base), metrics=metrics
        )
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
        return self._take

    def done(self) -> LiveState:
        if self._state is None:
            self.begin(0)
        return self._apply()

    def _take(self, write: Logged) -> None:
        self.words.count([write])
        self._some.append(write)
        if len(self._some) == _CHUNK:
            self._apply()

    def _apply(self) -> LiveState:
        assert self._state is not None
        self._state.apply(self._some)
        self._some = []
        return self._state
