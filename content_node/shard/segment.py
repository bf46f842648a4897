"""The one interface of passages that never change: on disk, in memory, fake.

A shard is seen as a row of segments (`content_node.shard.view`): what was built or merged lies on
disk and is searched by a graph, what was written since lies in memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.store import StoredPassage
from winnow.inference.stop import Stop

Vector = NDArray[np.float32]
Rows = NDArray[np.bool_]
"""Which rows count, [rows]."""
Found = list[tuple[int, float]]
"""Rows, each with its squared distance or its BM25."""


@dataclass(frozen=True, slots=True)
class Terms:
    """The distinct words of a question that the index may have, as tokens."""

    ids: NDArray[np.int64]
    """Ascending, [terms]."""
    rarities: NDArray[np.float64]
    """How much a match of each is worth, [terms]; counted over the whole index."""
    mean_length: float
    """Mean number of tokens of the index's passages."""


class Segment(Protocol):
    """Passages in rows 0 to `rows` - 1. Safe to use from several threads.

    All methods raise `ArtefactError` if a file was written to since it was verified, and those with
    a `stop` raise `StoppedError` once it is set.
    """

    @property
    def rows(self) -> int:
        """How many rows there are, also those that hold nothing any more."""

    @property
    def fields(self) -> tuple[str, ...]:
        """Names of the metadata's fields, in order; at most `MOST_FIELDS`."""

    def thinned(self, allowed: Rows | None, most: int) -> Rows | None:
        """The allowed rows without those of many equal passages that come after the first `most` of
        them, by id; None for all.
        """

    def nearest(
        self, vector: Vector, k: int, allowed: Rows | None = None, stop: Stop | None = None
    ) -> Found:
        """The nearest `k` of the allowed rows with their distances, nearest first, ties by row; and
        all that are as near as the last of them.
        """

    def best_by_words(
        self, terms: Terms, k: int, allowed: Rows | None = None, stop: Stop | None = None
    ) -> Found:
        """The best `k` of the allowed rows that have a term, with BM25, best first, ties by row;
        and all that are as good as the last of them in single precision.
        """

    def distances(self, vector: Vector, rows: Sequence[int]) -> NDArray[np.float32]:
        """Squared distances of rows, bit for bit as `nearest` gives them."""

    def match(self, terms: Terms, rows: Sequence[int]) -> NDArray[np.float64]:
        """BM25 of rows, bit for bit as `best_by_words` gives them; 0 where no term is."""

    def named(self, rows: Sequence[int]) -> list[tuple[str, int]]:
        """The id of each passage, and the write that put it (0 if it was there when built)."""

    def find(self, passage_id: str, sequence: int) -> int | None:
        """The row of a passage as this write put it (0: as it was built); None if it has none."""

    def load(self, row: int) -> StoredPassage:
        """A passage as the reader needs it.

        Raises:
            GenerationGoneError: the row holds nothing any more.

        """

    def where(self, expression: str, stop: Stop | None = None) -> Rows:
        """The rows that a filter lets through; a field that no row has lets none through.

        Raises:
            InvalidRequestError: it is no filter.

        """
