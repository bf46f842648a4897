"""The passage id of each row and the sequence number of its write, in memory.

Every hit names its passage. Reading the names from SQLite would be a tenth of a retrieval.
"""

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.id_order import IdOrder
from winnow.content_node.shard.rows import RowNumbers
from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile

NO_PASSAGE = -1
"""Sequence number of a row without a passage."""


class RowNames:
    """The names of a segment's rows: passage ids and sequence numbers. Immutable."""

    def __init__(
        self,
        file: OpenFile,
        ids: bytes,
        ends: RowNumbers,
        sequences: NDArray[np.int64],
        *,
        by_id: Callable[[], RowNumbers],
    ) -> None:
        """Takes arrays that were read from `file`.

        Args:
            file: file with the arrays.
            ids: ids of all rows, joined, in UTF-8.
            ends: where the id of each row ends in `ids`, [rows].
            sequences: sequence number of the write of each row, [rows].
            by_id: returns the rows ordered by id.

        """
        self._file, self._ids, self._ends, self._sequences = file, ids, ends, sequences
        self._by_id = by_id
        self._order: IdOrder | None = None

    def rows_after(self, passage_id: str) -> RowNumbers:
        """Returns the rows whose id is greater than `passage_id`, ordered by id in UTF-8.

        The first call reads the order of the ids, about 0.5 s per million passages.

        Raises:
            ArtefactError: the file was changed.

        """
        return self._checked_order().rows_after(passage_id)

    def rows_with_prefix(self, prefix: str) -> RowNumbers:
        """Returns the rows whose id begins with `prefix`, as `rows_after` does."""
        return self._checked_order().rows_with_prefix(prefix)

    def _checked_order(self) -> IdOrder:
        if self._order is None:  # two threads may both read it
            self._order = IdOrder(self._by_id(), self._id_of)
        self._file.check()
        return self._order

    def _id_of(self, row: int) -> bytes:
        return self._ids[int(self._ends[row - 1]) if row else 0 : int(self._ends[row])]

    def ids_and_sequences(self, rows: Sequence[int]) -> list[tuple[str, int]]:
        """Returns each row's passage id and the sequence number of its write (0: the build).

        Raises:
            ArtefactError: a row is missing, or the file was changed.

        """
        self._file.check()
        index = np.array(rows, np.int64)
        sequences, ends = self._sequences[index].tolist(), self._ends[index].tolist()
        if NO_PASSAGE in sequences:
            raise ArtefactError(f"{self._file.path} has no row {rows[sequences.index(NO_PASSAGE)]}")
        begins = np.where(index, self._ends[index - 1], 0).tolist()
        ids = (self._ids[begin:end].decode() for begin, end in zip(begins, ends, strict=True))
        return list(zip(ids, sequences, strict=True))
