"""Scores rows of a view by late interaction: with stored token vectors, or computed ones.

Passages that were written since the last merge have no stored token vectors. Theirs are computed
when they are first needed, and cached. Both are equal, so an answer does not depend on it.
"""

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.late_interaction.passage_tokens import PassageTokens
from winnow.content_node.late_interaction.similarity import PassageVectors, late_scores
from winnow.content_node.shard.row_filter import check_stop
from winnow.content_node.shard.rows import RowNumbers
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


class LateScorer:
    """Scores passages of one shard by late interaction. Safe to use from several threads."""

    def __init__(self, open_model: Callable[[], PassageTokens]) -> None:
        """`open_model` returns the model that computes missing token vectors."""
        self._open_model = open_model
        self._computed = ByteBoundedLru[tuple[str, int], NDArray[np.int8]](_CACHE_BYTES)
        """Levels by passage id and sequence number of the write."""
        self._lock = threading.Lock()

    def scores(
        self,
        view: ShardView,
        question: QuestionTokens,
        rows: Sequence[int],
        stop: StopSignal | None = None,
    ) -> NDArray[np.float64]:
        """Returns the score of each row, [rows].

        Raises:
            StoppedError: `stop` was set while token vectors were computed.
            ArtefactError: a file was changed.

        """
        score = partial(self._segment_scores, question, stop)
        return np.array(view.map_rows(rows, score), np.float64)

    def _segment_scores(
        self,
        question: QuestionTokens,
        stop: StopSignal | None,
        segment: Segment,
        own: Sequence[int],
    ) -> list[float]:
        rows, file = np.array(own, np.int64), segment.token_vectors
        scores, stored = np.empty(len(rows)), np.zeros(len(rows), np.bool_)
        if file is not None:
            stored = file.has_rows(rows)
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
        key = segment.ids_and_sequences([row])[0]
        with self._lock:
            cached = self._computed.get(key)
        if cached is not None:
            return cached
        check_stop(stop)
        levels = self._open_model().levels(segment.load(row))
        with self._lock:
            self._computed.put(key, levels, levels.nbytes + _OVERHEAD)
        return levels


@dataclass(frozen=True, slots=True, kw_only=True)
class LateRanking:
    """The ranking of a shard's candidates by distance, words and late interaction."""

    words: float
    """Squared distance that equals one unit of BM25."""
    tokens: float
    """Squared distance that equals one unit of the score of late interaction."""
    scorer: LateScorer


def read_vectors(file: StateFile, rows: RowNumbers) -> PassageVectors:
    """Reads the stored token vectors of rows that have some."""
    data, sizes = file.read_rows(rows)
    levels = np.frombuffer(data, np.int8).reshape(-1, file.width)
    return PassageVectors(levels, sizes // file.width)
