"""Segments of a shard: immutable sets of passages with one interface, on disk and in memory.

A shard is a sequence of segments (`content_node.shard.view`). Built and merged passages are on disk
and are searched by a graph. Passages written since then are in memory.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.bm25 import Terms
from winnow.content_node.shard.equal_passages import EqualPassages
from winnow.content_node.shard.nearest import NearestIndex, Vector, VectorSource, compute_distances
from winnow.content_node.shard.postings import Postings
from winnow.content_node.shard.row_filter import RowFilter, check_stop
from winnow.content_node.shard.row_scan import nearest_of_rows
from winnow.content_node.shard.rows import RowList, RowMask, RowNumbers, ScoredRows, SelectedRows
from winnow.content_node.shard.words import WordIndex
from winnow.content_node.states.file import StateFile
from winnow.domain.listing import SelectedFields
from winnow.domain.passage import Passage
from winnow.inference.stop_signal import StopSignal
from winnow.reading.stored_passage import StoredPassage


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment(ABC):
    """Passages in rows 0 to `rows` - 1. Safe to use from several threads.

    All methods raise ArtefactError if a file was changed after its verification. Methods with the
    parameter `stop` raise StoppedError once `stop` is set.
    """

    rows: int
    """Number of rows, including empty ones."""
    index: NearestIndex
    vectors: VectorSource
    words: WordIndex
    postings: Postings
    row_filter: RowFilter
    equal_passages: EqualPassages
    occupied_rows: RowMask | None = None
    """The rows that hold a passage; None if every row does."""
    token_vectors: StateFile | None = None
    """Stored token vectors of passages; None if there are none."""

    @property
    def field_names(self) -> tuple[str, ...]:
        """Sorted names of the metadata fields; at most `MAX_FIELDS`."""
        return self.row_filter.field_names

    def matching_rows(self, expression: str, stop: StopSignal | None = None) -> RowMask:
        """Returns the rows whose passage matches a filter; the caller owns the array.

        Raises:
            InvalidRequestError: the expression is not a filter.

        """
        matching = self.row_filter.matching_rows(expression, stop)
        return matching if self.occupied_rows is None else matching & self.occupied_rows

    def nearest(
        self,
        vector: Vector,
        k: int,
        allowed: SelectedRows = None,
        stop: StopSignal | None = None,
    ) -> ScoredRows:
        """Returns the nearest `k` allowed rows with squared distances, nearest first, ties by row.

        The result also includes all further rows at the distance of the last one. A list of rows is
        searched exactly. It has no empty rows.
        """
        check_stop(stop)
        if isinstance(allowed, RowList):
            return nearest_of_rows(self.vectors, vector, k, allowed.rows, stop)
        return self.index.nearest(vector, k, self._live_rows(allowed), stop)

    def best_by_words(
        self,
        terms: Terms,
        k: int,
        allowed: SelectedRows = None,
        stop: StopSignal | None = None,
        others: Sequence[int] = (),
    ) -> tuple[ScoredRows, NDArray[np.float64]]:
        """Returns the best `k` allowed rows that contain a term, with BM25 scores, and the scores
        of `others`.

        The best rows come first, ties by row. They also include all rows that equal the last one's
        score in single precision. If `allowed` is a list, `others` must be a part of it.
        """
        check_stop(stop)
        selected = allowed if isinstance(allowed, RowList) else self._live_rows(allowed)
        return self.postings.best(terms, k, selected, stop, others)

    def distances(self, vector: Vector, rows: Sequence[int]) -> NDArray[np.float32]:
        """Returns squared distances of rows, bit for bit as `nearest` returns them."""
        return compute_distances(self.vectors, vector, rows)

    def bm25_scores(self, terms: Terms, rows: Sequence[int]) -> NDArray[np.float64]:
        """Returns BM25 scores of rows, bit for bit as `best_by_words` returns them; 0 without a
        common term.
        """
        return self.words.bm25_scores(terms, rows)

    @abstractmethod
    def ids_and_sequences(self, rows: Sequence[int]) -> list[tuple[str, int]]:
        """Returns each row's passage id and the sequence number of its write (0: the build)."""

    @abstractmethod
    def find_row(self, passage_id: str, sequence: int) -> int | None:
        """Returns the row of the passage that was put by the write `sequence` (0: the build).

        Returns None without such a row.
        """

    @abstractmethod
    def rows_of(self, passage_id: str) -> Sequence[int]:
        """Returns the rows of all passages with this id, also of overwritten ones, ascending."""

    @abstractmethod
    def rows_after(self, passage_id: str) -> RowNumbers:
        """Returns the rows whose id is greater than `passage_id`, ordered by id in UTF-8.

        The first call sorts the ids.
        """

    @abstractmethod
    def rows_with_prefix(self, prefix: str) -> RowNumbers:
        """Returns the rows whose id begins with `prefix`, ordered by id in UTF-8.

        The first call sorts the ids.
        """

    @abstractmethod
    def load_fields(self, rows: Sequence[int], fields: SelectedFields) -> list[Passage]:
        """Returns some fields of the rows' passages; the other fields are empty.

        Raises ArtefactError if a row has no passage.
        """

    @abstractmethod
    def content_bytes(self, rows: Sequence[int]) -> int:
        """Returns the size of the rows' titles, texts and metadata, in bytes of UTF-8.

        Raises ArtefactError if a row has no passage.
        """

    @abstractmethod
    def load(self, row: int) -> StoredPassage:
        """Returns the passage of a row with its tokens and states.

        Raises:
            GenerationGoneError: the row's passage was removed by a merge.

        """

    def _live_rows(self, allowed: RowMask | None) -> RowMask | None:
        if self.occupied_rows is None or allowed is None:
            return self.occupied_rows if allowed is None else allowed
        return self.occupied_rows & allowed
