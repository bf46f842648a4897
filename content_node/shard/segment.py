"""Passages that never change: the one interface, and the search that is the same on disk and in
memory.

A shard is a row of segments (`content_node.shard.view`). Passages that were built or merged lie on
disk and are searched by a graph. Passages written since lie in memory.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.bm25 import Terms
from winnow.content_node.shard.equal_passages import EqualPassages
from winnow.content_node.shard.nearest import NearestIndex, VectorSource, distances_of
from winnow.content_node.shard.postings import Postings
from winnow.content_node.shard.row_filter import RowFilter, check_stop
from winnow.content_node.shard.rows import RowMask, ScoredRows
from winnow.content_node.shard.store import StoredPassage
from winnow.content_node.shard.words import WordIndex
from winnow.inference.stop import Stop

Vector = NDArray[np.float32]


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment(ABC):
    """Passages in rows 0 to `rows` - 1. Safe to use from several threads.

    All methods raise ArtefactError if a file was written to since it was verified. Methods with a
    `stop` raise StoppedError once it is set.
    """

    rows: int
    """Number of rows, including empty ones."""
    index: NearestIndex
    vectors: VectorSource
    words: WordIndex
    postings: Postings
    filters: RowFilter
    equal: EqualPassages
    """Passages that equal many others."""
    held: RowMask | None = None
    """The rows that hold a passage; None where all do."""

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the metadata's fields, in order; at most `MOST_FIELDS`."""
        return self.filters.names

    def where(self, expression: str, stop: Stop | None = None) -> RowMask:
        """Returns the rows that hold a passage which a filter accepts; the caller owns the array.

        Raises:
            InvalidRequestError: the expression is not a filter.

        """
        accepted = self.filters.where(expression, stop)
        return accepted if self.held is None else accepted & self.held

    def thinned(self, allowed: RowMask | None, most: int) -> RowMask | None:
        """Returns the allowed rows with at most `most` of each group of equal passages: the first
        ones by id. None stands for all rows.
        """
        return self.equal.thinned(allowed, most)

    def nearest(
        self, vector: Vector, k: int, allowed: RowMask | None = None, stop: Stop | None = None
    ) -> ScoredRows:
        """Returns the nearest `k` of the allowed rows with squared distances, nearest first, ties
        by row; and all rows that are as near as the last of them.
        """
        check_stop(stop)
        return self.index.nearest(vector, k, self._holding(allowed), stop)

    def best_by_words(
        self, terms: Terms, k: int, allowed: RowMask | None = None, stop: Stop | None = None
    ) -> ScoredRows:
        """Returns the best `k` of the allowed rows that have a term, with BM25, best first, ties by
        row; and all rows that are as good as the last of them in single precision.
        """
        check_stop(stop)
        return self.postings.best(terms, k, self._holding(allowed), stop)

    def distances(self, vector: Vector, rows: Sequence[int]) -> NDArray[np.float32]:
        """Returns squared distances of rows, bit for bit as `nearest` gives them."""
        return distances_of(self.vectors, vector, rows)

    def match(self, terms: Terms, rows: Sequence[int]) -> NDArray[np.float64]:
        """Returns BM25 of rows, bit for bit as `best_by_words` gives it; 0 where no term is."""
        return self.words.match(terms, rows)

    @abstractmethod
    def named(self, rows: Sequence[int]) -> list[tuple[str, int]]:
        """Returns the id of each passage, and the write that put it (0: the build)."""

    @abstractmethod
    def find(self, passage_id: str, sequence: int) -> int | None:
        """Returns the row of a passage as this write put it (0: the build); None if it has none."""

    @abstractmethod
    def load(self, row: int) -> StoredPassage:
        """Returns a passage as the reader needs it.

        Raises:
            GenerationGoneError: the row holds no passage any more.

        """

    def _holding(self, allowed: RowMask | None) -> RowMask | None:
        if self.held is None or allowed is None:
            return self.held if allowed is None else allowed
        return self.held & allowed
