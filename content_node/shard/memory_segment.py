"""Passages in memory as a segment: what was put since the shard's files were written."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.equal_passages import equal_passages, groups_of, hashed
from winnow.content_node.shard.memory_passages import MemoryPassages
from winnow.content_node.shard.memory_vectors import MemoryVectors
from winnow.content_node.shard.nearest import ExactIndex, distances_of
from winnow.content_node.shard.passage_fields import MemoryFields
from winnow.content_node.shard.postings import in_memory
from winnow.content_node.shard.segment import Found, Rows, Terms, Vector
from winnow.content_node.shard.store import StoredPassage
from winnow.content_node.shard.words import WordIndex
from winnow.inference.stop import Stop


class MemorySegment:
    """A few thousand passages at most: each question compares with every one of them."""

    def __init__(self, own: MemoryPassages, fields: MemoryFields | None = None) -> None:
        """Takes some 10 µs for each passage; less where their `fields` are known."""
        self._own = own
        self._vectors, self._index = MemoryVectors(own.vectors), ExactIndex(own.vectors)
        self._ends, self._text_ends = own.ends, np.cumsum(own.texts)
        self._words = WordIndex(own.tokens, self._ends)
        self._postings = in_memory(own.tokens, self._ends)
        self._fields = fields or MemoryFields.of([each.metadata for each in own.passages])
        keys = zip((each.id for each in own.passages), own.sequences, strict=True)
        self._rows = {key: row for row, key in enumerate(keys)}
        same = groups_of(hashed(own.vectors))
        self._equal = equal_passages(same, self._words.tokens, self._by_id, self.rows)

    @property
    def own(self) -> MemoryPassages:
        """What is in it."""
        return self._own

    @property
    def rows(self) -> int:
        return len(self._own.passages)

    @property
    def fields(self) -> tuple[str, ...]:
        return self._fields.names

    def thinned(self, allowed: Rows | None, most: int) -> Rows | None:
        return self._equal.thinned(allowed, most)

    def nearest(
        self, vector: Vector, k: int, allowed: Rows | None = None, stop: Stop | None = None
    ) -> Found:
        return self._index.nearest(vector, k, allowed, stop)

    def best_by_words(
        self, terms: Terms, k: int, allowed: Rows | None = None, stop: Stop | None = None
    ) -> Found:
        return self._postings.best(terms, k, allowed, stop)

    def distances(self, vector: Vector, rows: Sequence[int]) -> NDArray[np.float32]:
        return distances_of(self._vectors, vector, rows)

    def match(self, terms: Terms, rows: Sequence[int]) -> NDArray[np.float64]:
        return self._words.match(terms, rows)

    def named(self, rows: Sequence[int]) -> list[tuple[str, int]]:
        own = self._own
        return [(own.passages[row].id, own.sequences[row]) for row in rows]

    def find(self, passage_id: str, sequence: int) -> int | None:
        return self._rows.get((passage_id, sequence))

    def load(self, row: int) -> StoredPassage:
        return self._own.load(row, int(self._ends[row]), int(self._text_ends[row]))

    def where(self, expression: str, stop: Stop | None = None) -> Rows:
        return self._fields.where(expression, stop)

    def _by_id(self) -> NDArray[np.int64]:
        ids = [each.id for each in self._own.passages]
        return np.array(sorted(range(self.rows), key=ids.__getitem__), np.int64)

    def joined(self, *others: "MemorySegment") -> "MemorySegment":
        """One segment with the rows of this one, then those of the others in their order."""
        fields = self._fields.joined(*(other._fields for other in others))
        return MemorySegment(self._own.joined(*(other.own for other in others)), fields)
