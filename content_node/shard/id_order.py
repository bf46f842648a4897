"""The rows of a segment in the order of their ids. Pure.

Ids are compared as bytes in UTF-8, on disk and in memory, so that a page of a listing can continue
in any segment, shard or process.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable

from winnow.content_node.shard.rows import RowNumbers


class IdOrder:
    """Rows that are sorted by their ids."""

    def __init__(self, rows: RowNumbers, id_of: Callable[[int], bytes]) -> None:
        """`rows` are sorted by `id_of`, which returns the id of a row in UTF-8."""
        self._rows, self._id_of = rows, id_of

    def rows_after(self, passage_id: str) -> RowNumbers:
        """Returns the rows whose id is greater than `passage_id`, in the order of their ids."""
        if not passage_id:
            return self._rows
        begin = bisect_right(self._rows, passage_id.encode(), key=lambda row: self._id_of(int(row)))
        return self._rows[begin:]

    def rows_with_prefix(self, prefix: str) -> RowNumbers:
        """Returns the rows whose id begins with `prefix`, in the order of their ids."""
        data = prefix.encode()
        begin = bisect_left(self._rows, data, key=lambda row: self._id_of(int(row)))
        # of an id, only as many bytes as the prefix has are compared
        end = bisect_right(
            self._rows, data, lo=begin, key=lambda row: self._id_of(int(row))[: len(data)]
        )
        return self._rows[begin:end]
