"""Types for rows of a segment."""

from dataclasses import dataclass
from typing import TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

RowMask = NDArray[np.bool_]
"""Whether each row is selected, [rows]."""
RowNumbers = NDArray[np.int64]
ScoredRows = list[tuple[int, float]]
"""Rows, each with its squared distance or its BM25 score."""
Number = TypeVar("Number", bound=np.generic)


@dataclass(frozen=True, slots=True, eq=False)
class RowList:
    """Selected rows as a list: searches take time for these rows only."""

    rows: RowNumbers
    """Ascending and distinct."""

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def is_range(self) -> bool:
        """Whether the rows follow each other without gaps."""
        return bool(len(self.rows)) and int(self.rows[-1] - self.rows[0]) + 1 == len(self.rows)

    def values_of(self, table: NDArray[Number]) -> NDArray[Number]:
        """Returns the values of these rows in a table of all rows: not copied from a range."""
        if self.is_range:
            return table[int(self.rows[0]) : int(self.rows[-1]) + 1]
        return table[self.rows]

    def matching(self, mask: RowMask) -> "RowList":
        """Returns those of the rows that are selected by a mask, too."""
        return RowList(self.rows[mask[self.rows]])

    def mask(self, rows: int) -> RowMask:
        """Returns these rows as a mask of a segment with `rows` rows."""
        mask = np.zeros(rows, np.bool_)
        mask[self.rows] = True
        return mask


SelectedRows: TypeAlias = RowMask | RowList | None
"""The rows that a search may return: a mask, a list if they are few, or None for all."""
