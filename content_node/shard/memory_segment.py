"""A segment in memory: passages put since the shard's files were written."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.equal_passages import find_equal_passages, group_equal, hash_vectors
from winnow.content_node.shard.memory_fields import MemoryFields
from winnow.content_node.shard.memory_passages import MemoryPassages
from winnow.content_node.shard.nearest import ExactIndex
from winnow.content_node.shard.postings import Postings
from winnow.content_node.shard.row_filter import RowFilter
from winnow.content_node.shard.rows import RowNumbers
from winnow.content_node.shard.segment import Segment
from winnow.content_node.shard.words import WordIndex
from winnow.domain.listing import SelectedFields
from winnow.domain.passage import Passage
from winnow.reading.stored_passage import StoredPassage

_MASK_BYTES = 1 << 20
"""Limit of cached filter masks per segment; there may be a dozen segments in memory."""


class MemoryVectors:
    """The rows of an array as a `VectorSource`."""

    def __init__(self, vectors: NDArray[np.float32]) -> None:
        """`vectors` is float32 [rows, dimension]."""
        self._vectors = vectors

    def read(self, rows: RowNumbers) -> NDArray[np.float32]:
        return self._vectors[rows]

    def chunks(self, rows: RowNumbers) -> Iterator[tuple[RowNumbers, NDArray[np.float32]]]:
        if len(rows):
            yield rows, self._vectors[rows]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemorySegment(Segment):
    """At most a few thousand passages in memory, searched exhaustively."""

    passages: MemoryPassages
    metadata: MemoryFields
    row_by_key: dict[tuple[str, int], int]
    """The row of each passage, by its id and the sequence number of its write."""

    @classmethod
    def build(cls, passages: MemoryPassages, metadata: MemoryFields | None = None) -> Self:
        """Indexes passages. Takes about 10 µs for each, less with parsed `metadata`."""
        rows, vectors = len(passages.passages), passages.vectors
        ids = [each.id for each in passages.passages]
        words = WordIndex(passages.tokens, passages.token_ends)
        metadata = metadata or MemoryFields.parse([each.metadata for each in passages.passages])
        return cls(
            rows=rows,
            index=ExactIndex(vectors),
            vectors=MemoryVectors(vectors),
            words=words,
            postings=Postings.from_tokens(passages.tokens, passages.token_ends),
            row_filter=RowFilter(metadata, rows, _MASK_BYTES),
            equal_passages=find_equal_passages(
                group_equal(hash_vectors(vectors)),
                words.tokens,
                lambda: np.array(sorted(range(rows), key=ids.__getitem__), np.int64),
                rows,
            ),
            passages=passages,
            metadata=metadata,
            row_by_key={
                key: row for row, key in enumerate(zip(ids, passages.sequences, strict=True))
            },
        )

    def joined(self, *others: "MemorySegment") -> "MemorySegment":
        """Returns one segment with the rows of this segment and of `others`, in this order."""
        return MemorySegment.build(
            self.passages.joined(*(other.passages for other in others)),
            self.metadata.joined(*(other.metadata for other in others)),
        )

    def ids_and_sequences(self, rows: Sequence[int]) -> list[tuple[str, int]]:
        return [(self.passages.passages[row].id, self.passages.sequences[row]) for row in rows]

    def find_row(self, passage_id: str, sequence: int) -> int | None:
        return self.row_by_key.get((passage_id, sequence))

    def rows_of(self, passage_id: str) -> Sequence[int]:
        return self.passages.rows_by_id.get(passage_id, ())

    def rows_after(self, passage_id: str) -> RowNumbers:
        return self.passages.id_order.rows_after(passage_id)

    def rows_with_prefix(self, prefix: str) -> RowNumbers:
        return self.passages.id_order.rows_with_prefix(prefix)

    def load_fields(self, rows: Sequence[int], fields: SelectedFields) -> list[Passage]:
        return [
            Passage(
                passage.id,
                passage.title if fields.title else "",
                passage.text if fields.text else "",
                passage.metadata if fields.metadata else "",
            )
            for passage in map(self.passages.passages.__getitem__, rows)
        ]

    def content_bytes(self, rows: Sequence[int]) -> int:
        return sum(self.passages.passages[row].content_bytes for row in rows)

    def load(self, row: int) -> StoredPassage:
        return self.passages.load(row)
