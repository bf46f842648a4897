"""The rows of one term of a question, and their scores in single precision.

A term that many rows have is kept as a table of all rows. Adding the scores of a table takes a
seventh of the time of a list of all rows, and as long as a list of an eighth of them.
"""

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.bm25 import single_term_scores
from winnow.content_node.shard.rows import RowList, RowNumbers

SingleFloats = NDArray[np.float32]


class TermRows(Protocol):
    """The rows that contain a term, and how often each contains it."""

    @property
    def covers_all_rows(self) -> bool:
        """Whether `add_scores` takes time for every row of the segment."""

    @property
    def frequency(self) -> int:
        """Number of rows that contain the term."""

    def among(self, selected: RowList) -> "TermRows":
        """Returns the selected rows that contain the term; 0 stands for the first selected row."""

    def add_scores(self, scores: SingleFloats, saturations: SingleFloats, rarity: float) -> None:
        """Adds the term's scores to those of all rows. Both arrays are [rows]."""

    def counts(self, rows: RowNumbers) -> NDArray[np.unsignedinteger]:
        """Returns how often each of `rows` contains the term, [len(rows)]."""


@dataclass(frozen=True, slots=True)
class TermList:
    """The rows of a term as a list."""

    rows: NDArray[np.integer]
    """Ascending."""
    row_counts: NDArray[np.unsignedinteger]
    """How often each of `rows` contains the term."""

    @property
    def covers_all_rows(self) -> bool:
        return False

    @property
    def frequency(self) -> int:
        return len(self.rows)

    def among(self, selected: RowList) -> "TermList":
        if not len(selected):
            return TermList(self.rows[:0], self.row_counts[:0])
        wanted = selected.rows.astype(self.rows.dtype)  # otherwise numpy converts the whole list
        begin, end = (
            self.rows.searchsorted(wanted[:1])[0],
            self.rows.searchsorted(wanted[-1:], "right")[0],
        )
        rows, row_counts = self.rows[begin:end], self.row_counts[begin:end]
        if selected.is_range:
            return TermList(rows - wanted[0], row_counts)
        if len(rows) <= len(wanted):
            indices = wanted.searchsorted(rows)  # no row is behind the last selected one
            found = wanted[indices] == rows
            return TermList(indices[found], row_counts[found])
        indices = rows.searchsorted(wanted).clip(max=len(rows) - 1)
        found = rows[indices] == wanted
        return TermList(np.flatnonzero(found), row_counts[indices[found]])

    def add_scores(self, scores: SingleFloats, saturations: SingleFloats, rarity: float) -> None:
        rows = self.rows.astype(np.intp)  # otherwise numpy converts them for each use
        scores[rows] += single_term_scores(self.row_counts, saturations[rows], rarity)

    def counts(self, rows: RowNumbers) -> NDArray[np.unsignedinteger]:
        if not len(self.rows):
            return np.zeros(len(rows), np.uint8)
        same_type = rows.astype(self.rows.dtype)  # otherwise numpy converts the whole list
        indices = self.rows.searchsorted(same_type)
        indices[indices == len(self.rows)] = 0
        return np.where(self.rows[indices] == same_type, self.row_counts[indices], 0)


@dataclass(frozen=True, slots=True)
class TermTable:
    """The number of times that each row contains a term."""

    row_counts: NDArray[np.unsignedinteger]
    """[rows]; 0 for rows without the term."""

    @classmethod
    def from_list(cls, term: TermList, rows: int) -> "TermTable":
        """Returns the table of a segment with `rows` rows."""
        row_counts = np.zeros(rows, term.row_counts.dtype)
        row_counts[term.rows] = term.row_counts
        return cls(row_counts)

    @property
    def covers_all_rows(self) -> bool:
        return True

    @property
    def frequency(self) -> int:
        return int(np.count_nonzero(self.row_counts))

    def among(self, selected: RowList) -> "TermTable":
        return TermTable(selected.values_of(self.row_counts))

    def add_scores(self, scores: SingleFloats, saturations: SingleFloats, rarity: float) -> None:
        scores += single_term_scores(self.row_counts, saturations, rarity)

    def counts(self, rows: RowNumbers) -> NDArray[np.unsignedinteger]:
        return self.row_counts[rows]
