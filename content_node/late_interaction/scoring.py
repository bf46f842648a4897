"""Scores rows of a view by late interaction: with stored token vectors, or computed ones.

Passages that were written since the last merge have no stored token vectors. Theirs are computed in
the background (`content_node.late_interaction.background`). Both are equal, so they give the same
scores. A question computes only a few: if more are missing, its passages are ranked without late
interaction.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.late_interaction.computed_tokens import ComputedTokens, TokensKey
from winnow.content_node.late_interaction.passage_tokens import PassageTokens
from winnow.content_node.late_interaction.similarity import PassageVectors, late_scores
from winnow.content_node.shard.row_filter import check_stop
from winnow.content_node.shard.rows import RowMask, RowNumbers
from winnow.content_node.shard.segment import Segment
from winnow.content_node.shard.view import PlacedSegment, ShardView
from winnow.content_node.states.file import StateFile
from winnow.domain.question import QuestionTokens
from winnow.errors import ArtefactError
from winnow.inference.stop_signal import StopSignal


class OpensPassageTokens(Protocol):
    """Opens the model that computes token vectors. Safe to use from several threads."""

    @property
    def opened(self) -> PassageTokens | None:
        """The model, if it is open."""

    def open(self) -> PassageTokens:
        """Returns the model; opens it first if necessary, which takes up to seconds.

        Raises ArtefactError, which is logged, if the model cannot be opened.
        """

    def close(self) -> None:
        """Releases the model once no thread uses it. The next `open` opens it again."""


@dataclass(frozen=True, slots=True, eq=False)
class LateScores:
    """Scores of rows by late interaction, or the reason why there are none."""

    values: NDArray[np.float64] | None
    """The score of each row, [rows]; None if too many rows lack token vectors."""
    lacking: int = 0
    """Number of rows without token vectors, if there are no scores."""


class LateScorer:
    """Scores passages of one shard by late interaction. Safe to use from several threads."""

    def __init__(self, model: OpensPassageTokens, computed: ComputedTokens) -> None:
        """`model` computes missing token vectors, and `computed` caches them."""
        self._model, self._computed = model, computed
        self._is_closed = False

    def scores(
        self,
        view: ShardView,
        question: QuestionTokens,
        rows: Sequence[int],
        stop: StopSignal | None = None,
    ) -> "LateScores":
        """Scores rows. There are no scores if too many token vectors are missing.

        There are none either if some are missing and the model that computes them is not open. A
        question does not wait until it is. Nor are there any if stored token vectors cannot be
        read, which is logged.

        Raises:
            StoppedError: `stop` was set while token vectors were computed.
            ArtefactError: another file of the shard was changed.

        """
        parts = _split_rows(view, np.array(rows, np.int64))
        missing = [
            (part.segment, row)
            for part in parts
            for row in self._without_cached(part.segment, part.rows[~part.stored])
        ]
        if missing and not self._compute_all(missing, stop):
            return LateScores(None, len(missing))
        scores = np.empty(len(rows))
        for part in parts:
            own = self._segment_scores(part, question, stop)
            if own is None:
                return LateScores(None, int(part.stored.sum()))
            scores[part.places] = own
        return LateScores(scores)

    @property
    def model(self) -> OpensPassageTokens:
        """The model, which shards with the same bundle share."""
        return self._model

    def close_model(self) -> None:
        """Closes the model, since nothing is left to compute.

        It stays open if token vectors were probably evicted, because questions compute those.
        """
        if not self._computed.is_full:
            self._model.close()

    def keep(self, passage_id: str, sequence: int, levels: NDArray[np.int8]) -> None:
        """Caches token vectors, [tokens, values], of the passage that the write `sequence` put."""
        if not self._is_closed:
            self._computed.put((self, passage_id, sequence), levels)
        if self._is_closed:  # by another thread, which may have emptied the cache before
            self._computed.discard(self)

    def forget_stored(self, view: ShardView) -> None:
        """Removes the token vectors of merged writes from the cache, if the base has all of them.

        Takes time for each cached passage.
        """
        base = view.segments[0]
        if bool(_has_stored_tokens(base.segment, _present_rows(base, 0)).all()):
            self._computed.discard(self, upto=view.manifest.sequence)

    def close(self) -> None:
        """Removes all token vectors of the shard from the cache, and caches no more."""
        self._is_closed = True
        self._computed.discard(self)

    def computed_tokens(self, view: ShardView) -> Iterator[tuple[str, int, NDArray[np.int8]]]:
        """Yields the cached token vectors of passages in a view that have no stored ones.

        Each comes with its passage id and the sequence number of its write.
        """
        for placed in view.segments:
            rows = _present_rows(placed, 0)
            rows = rows[~_has_stored_tokens(placed.segment, rows)].tolist()
            for key in self._tokens_keys(placed.segment, rows):
                levels = self._computed.get(key)
                if levels is not None:
                    yield key[1], key[2], levels

    def compute_missing(
        self, view: ShardView, first_row: int, may_continue: Callable[[], bool]
    ) -> bool:
        """Computes the missing token vectors of the rows from `first_row` on.

        Ends early, and returns False, once `may_continue` returns False. It is called before each
        passage that is computed. The model is then open if token vectors were probably evicted,
        even if front nodes sent all of them: questions open no model.

        Raises:
            ArtefactError: the model cannot be opened, or a file was changed.

        """
        for placed in view.segments:
            rows = _present_rows(placed, first_row)
            rows = rows[~_has_stored_tokens(placed.segment, rows)]
            for row in self._without_cached(placed.segment, rows):
                if not may_continue():
                    return False
                self._compute_levels(self._model.open(), placed.segment, row)
        if self._computed.is_full:  # those that were evicted are computed for questions
            self._model.open()
        return True

    def _compute_all(self, missing: Sequence[tuple[Segment, int]], stop: StopSignal | None) -> bool:
        """Computes the token vectors of rows; returns whether all of them are computed."""
        model = self._model.opened
        if model is None or not self._computed.admit(len(missing)):
            return False
        for segment, row in missing:
            check_stop(stop)
            self._compute_levels(model, segment, row)
        return True

    def _without_cached(self, segment: Segment, rows: RowNumbers) -> list[int]:
        """Returns those of the rows whose token vectors are not cached."""
        if not len(rows):
            return []
        own = rows.tolist()
        keys = self._tokens_keys(segment, own)
        return [row for row, key in zip(own, keys, strict=True) if self._computed.get(key) is None]

    def _tokens_keys(self, segment: Segment, rows: Sequence[int]) -> list[TokensKey]:
        return [(self, *name) for name in segment.ids_and_sequences(rows)]

    def _segment_scores(
        self, part: "_SegmentRows", question: QuestionTokens, stop: StopSignal | None
    ) -> NDArray[np.float64] | None:
        """Returns the score of each row, [rows]; None if token vectors cannot be read."""
        segment, rows, stored = part.segment, part.rows, part.stored
        scores, file = np.empty(len(rows)), segment.token_vectors
        if file is not None and stored.any():
            try:
                vectors = read_vectors(file, rows[stored])
            except ArtefactError as error:  # a question can do without late interaction
                file.log_unreadable(error)
                return None
            scores[stored] = late_scores(question, vectors)
        if not stored.all():
            computed = [self._computed_levels(segment, row, stop) for row in rows[~stored].tolist()]
            lengths = np.array([len(each) for each in computed], np.int64)
            vectors = PassageVectors(np.concatenate(computed), lengths)
            scores[~stored] = late_scores(question, vectors)
        return scores

    def _computed_levels(
        self, segment: Segment, row: int, stop: StopSignal | None
    ) -> NDArray[np.int8]:
        """Returns the computed levels of a row that has no stored ones."""
        cached = self._computed.get(self._tokens_keys(segment, [row])[0])
        if cached is not None:
            return cached
        check_stop(stop)  # it was evicted just now
        return self._compute_levels(self._model.open(), segment, row)

    def _compute_levels(self, model: PassageTokens, segment: Segment, row: int) -> NDArray[np.int8]:
        levels = model.levels(segment.load(row))
        self.keep(*segment.ids_and_sequences([row])[0], levels)
        return levels


@dataclass(frozen=True, slots=True, kw_only=True)
class LateRanking:
    """The ranking of a shard's candidates by distance, words and late interaction."""

    words: float
    """Squared distance that equals one unit of BM25."""
    tokens: float
    """Squared distance that equals one unit of the score of late interaction."""
    scorer: LateScorer


@dataclass(frozen=True, slots=True, eq=False)
class _SegmentRows:
    """The rows of one segment among the rows to score."""

    segment: Segment
    places: NDArray[np.int64]
    """Positions among the rows to score, [rows]."""
    rows: RowNumbers
    """Rows of the segment, [rows]."""
    stored: RowMask
    """Whether each row has stored token vectors, [rows]."""


def _split_rows(view: ShardView, rows: RowNumbers) -> list[_SegmentRows]:
    """Splits rows of a view by segment."""
    parts = []
    for placed in view.segments:
        first, end = placed.first_row, placed.first_row + placed.segment.rows
        places = np.flatnonzero((rows >= first) & (rows < end))
        if len(places):
            own = rows[places] - first
            stored = _has_stored_tokens(placed.segment, own)
            parts.append(_SegmentRows(placed.segment, places, own, stored))
    return parts


def _present_rows(placed: PlacedSegment, first_row: int) -> RowNumbers:
    """Returns the rows of a segment whose passages are in the view, from `first_row` of the view
    on.
    """
    rows = np.arange(max(first_row - placed.first_row, 0), placed.segment.rows)
    for mask in (placed.live_rows, placed.segment.occupied_rows):
        rows = rows if mask is None else rows[mask[rows]]
    return rows


def _has_stored_tokens(segment: Segment, rows: RowNumbers) -> RowMask:
    """Returns whether each row has stored token vectors, [rows]."""
    file = segment.token_vectors
    return np.zeros(len(rows), np.bool_) if file is None else file.has_rows(rows)


def read_vectors(file: StateFile, rows: RowNumbers) -> PassageVectors:
    """Reads the stored token vectors of rows that have some.

    Raises ArtefactError if the file was changed, or cannot be read.
    """
    data, sizes = file.read_rows(rows)
    levels = np.frombuffer(data, np.int8).reshape(-1, file.width)
    return PassageVectors(levels, sizes // file.width)
