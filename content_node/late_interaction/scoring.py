"""Scores rows of a view by late interaction: with stored token vectors, or computed ones.

Passages that were written since the last merge have no stored token vectors. Theirs are computed
when they are first needed, and cached. Both are equal, so they give the same scores. A question
computes only a few: if more are missing, its passages are ranked without late interaction.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.late_interaction.passage_tokens import PassageTokens
from winnow.content_node.late_interaction.similarity import PassageVectors, late_scores
from winnow.content_node.shard.row_filter import check_stop
from winnow.content_node.shard.rows import RowMask, RowNumbers
from winnow.content_node.shard.segment import Segment
from winnow.content_node.shard.view import ShardView
from winnow.content_node.states.file import StateFile
from winnow.domain.question import QuestionTokens
from winnow.inference.stop_signal import StopSignal
from winnow.policy.byte_bounded_lru import MIB, ByteBoundedLru

_CACHE_BYTES = 64 * MIB
"""Limit of computed token vectors: those of some 15,000 passages."""
_OVERHEAD = 300
"""Memory of a cached entry besides its vectors, in bytes."""
_Key = tuple[Path, str, int]
"""A shard's directory, a passage id, and the sequence number of the write that put the passage."""
MAX_COMPUTED = 8
"""Passages of a shard whose token vectors a question may compute, which takes some 0.1 s."""


class ComputedTokens:
    """Cache of computed token vectors, for all shards of a process. Safe to use from several
    threads.
    """

    def __init__(self, budget: int = _CACHE_BYTES) -> None:
        """`budget`: maximum bytes of all entries."""
        self._levels = ByteBoundedLru[_Key, NDArray[np.int8]](budget)
        self._lock = threading.Lock()

    def get(self, key: _Key) -> NDArray[np.int8] | None:
        """Returns the levels of a passage; None if they are not cached."""
        with self._lock:
            return self._levels.get(key)

    def put(self, key: _Key, levels: NDArray[np.int8]) -> None:
        """Caches the levels of a passage."""
        with self._lock:
            self._levels.put(key, levels, levels.nbytes + _OVERHEAD)


class LateScorer:
    """Scores passages of one shard by late interaction. Safe to use from several threads."""

    def __init__(
        self,
        open_model: Callable[[], PassageTokens],
        computed: ComputedTokens,
        shard: Path,
        *,
        max_computed: int = MAX_COMPUTED,
    ) -> None:
        """`open_model` returns the model that computes missing token vectors, at most
        `max_computed` a call. `computed` caches them; `shard` is the directory of the shard.
        """
        self._open_model, self._max_computed = open_model, max_computed
        self._computed, self._shard = computed, shard

    def scores(
        self,
        view: ShardView,
        question: QuestionTokens,
        rows: Sequence[int],
        stop: StopSignal | None = None,
    ) -> NDArray[np.float64] | None:
        """Returns the score of each row, [rows]; None if too many token vectors are missing.

        Then some of them are computed and cached, so that later calls need fewer.

        Raises:
            StoppedError: `stop` was set while token vectors were computed.
            ArtefactError: a file was changed.

        """
        missing: list[tuple[Segment, int]] = []

        def find_missing(segment: Segment, own: list[int]) -> list[None]:
            missing.extend((segment, row) for row in self._missing(segment, own))
            return [None] * len(own)

        view.map_rows(rows, find_missing)
        for segment, row in missing[: self._max_computed]:
            self._compute(segment, row, stop)
        if len(missing) > self._max_computed:
            return None
        score = partial(self._segment_scores, question, stop)
        return np.array(view.map_rows(rows, score), np.float64)

    def _missing(self, segment: Segment, own: Sequence[int]) -> list[int]:
        """Returns the rows whose token vectors are neither stored nor cached."""
        rows = np.array(own, np.int64)
        lacking = rows[~_stored(segment, rows)].tolist()
        if not lacking:
            return []
        return [
            row
            for row, key in zip(lacking, self._keys(segment, lacking), strict=True)
            if self._computed.get(key) is None
        ]

    def _keys(self, segment: Segment, rows: Sequence[int]) -> list[_Key]:
        return [(self._shard, *name) for name in segment.ids_and_sequences(rows)]

    def _segment_scores(
        self,
        question: QuestionTokens,
        stop: StopSignal | None,
        segment: Segment,
        own: Sequence[int],
    ) -> list[float]:
        rows, file = np.array(own, np.int64), segment.token_vectors
        scores, stored = np.empty(len(rows)), _stored(segment, rows)
        if file is not None:
            scores[stored] = late_scores(question, read_vectors(file, rows[stored]))
        if not stored.all():
            computed = [self._levels(segment, row, stop) for row in rows[~stored].tolist()]
            lengths = np.array([len(each) for each in computed], np.int64)
            vectors = PassageVectors(np.concatenate(computed), lengths)
            scores[~stored] = late_scores(question, vectors)
        result: list[float] = scores.tolist()
        return result

    def _levels(self, segment: Segment, row: int, stop: StopSignal | None) -> NDArray[np.int8]:
        """Returns the computed levels of a row that has no stored ones."""
        cached = self._computed.get(self._keys(segment, [row])[0])
        return self._compute(segment, row, stop) if cached is None else cached

    def _compute(self, segment: Segment, row: int, stop: StopSignal | None) -> NDArray[np.int8]:
        check_stop(stop)
        levels = self._open_model().levels(segment.load(row))
        self._computed.put(self._keys(segment, [row])[0], levels)
        return levels


@dataclass(frozen=True, slots=True, kw_only=True)
class LateRanking:
    """The ranking of a shard's candidates by distance, words and late interaction."""

    words: float
    """Squared distance that equals one unit of BM25."""
    tokens: float
    """Squared distance that equals one unit of the score of late interaction."""
    scorer: LateScorer


def _stored(segment: Segment, rows: RowNumbers) -> RowMask:
    """Returns whether each row has stored token vectors, [rows]."""
    file = segment.token_vectors
    return np.zeros(len(rows), np.bool_) if file is None else file.has_rows(rows)


def read_vectors(file: StateFile, rows: RowNumbers) -> PassageVectors:
    """Reads the stored token vectors of rows that have some."""
    data, sizes = file.read_rows(rows)
    levels = np.frombuffer(data, np.int8).reshape(-1, file.width)
    return PassageVectors(levels, sizes // file.width)
