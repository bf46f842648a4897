"""Opens a shard with its writes: a base, and the log of later writes."""

from collections.abc import Callable
from pathlib import Path

from winnow.content_node.live.custody import read_custody
from winnow.content_node.live.limits import WriteLimits
from winnow.content_node.live.log_entry import LoggedWrite
from winnow.content_node.live.opening import check_log_continues_base, open_log
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.live.state import LiveState
from winnow.content_node.live.word_counts import WordTally
from winnow.content_node.metrics import WriteMetrics
from winnow.content_node.shard.stored_segment import StoredSegment

_SEGMENT_WRITES = 8_000
"""Writes that are replayed together, as one segment."""


def open_live(
    directory: Path,
    open_base: Callable[[int], StoredSegment],
    limits: Callable[[StoredSegment], WriteLimits],
    metrics: WriteMetrics,
    *,
    feeding: bool,
) -> LiveShard:
    """Opens the log in a shard's `directory`, and applies its writes to the base.

    `open_base` gets the number of the last write that was trimmed from the log. Blocks for about a
    second per 20 000 writes. Writes nothing.

    Raises:
        ArtefactError: the log is damaged, is locked by another node, or belongs to another base.

    """
    replay = _Replay(open_base)
    log = open_log(directory, replay.start, feeding=feeding)
    try:
        state = replay.finish()
        state.set_log_id(log.log_id)
        # no text of a deleted tenant may stay in the file
        log.overwrites = state.base.manifest.has_tenants
        replay.words.add(log.trimmed_words.changes(log.trimmed))
        check_log_continues_base(state.base.manifest, directory, log.log_id, log.trimmed, log.last)
        return LiveShard(
            state=state,
            words=replay.words,
            log=log,
            limits=limits(state.base),
            metrics=metrics,
            custody=read_custody(directory),
        )
    except BaseException:
        log.close()
        raise


class _Replay:
    """Collects the writes of a log, and applies them to a base in large batches."""

    def __init__(self, open_base: Callable[[int], StoredSegment]) -> None:
        self._open_base = open_base
        self._state: LiveState | None = None
        self._batch: list[LoggedWrite] = []
        self.words = WordTally()

    def start(self, trimmed: int) -> Callable[[LoggedWrite], None]:
        """Opens the base for a log trimmed up to a write; returns a function that adds a write."""
        base = self._open_base(trimmed)
        self._state = LiveState(base, base.manifest.log_id)
        return self._add

    def finish(self) -> LiveState:
        """Returns the base with all added writes."""
        if self._state is None:
            self.start(0)
        return self._apply_batch()

    def _add(self, write: LoggedWrite) -> None:
        self.words.count_writes([write])
        self._batch.append(write)
        if len(self._batch) == _SEGMENT_WRITES:
            self._apply_batch()

    def _apply_batch(self) -> LiveState:
        assert self._state is not None
        self._state.apply(self._batch)
        self._batch = []
        return self._state
