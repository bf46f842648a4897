"""Passages in memory as a segment: what was put since the shard's files were written."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from content_node.shard.memory_vectors import MemoryVectors
from content_node.shard.nearest import ExactIndex, distances_of
from content_node.shard.passage_fields import PassageFields
from content_node.shard.postings import in_memory
from content_node.shard.segment import Found, Rows, Terms, Vector
from content_node.shard.store import StoredPassage
from content_node.shard.words import WordIndex
from winnow.domain.write import EncodedPassage
from winnow.inference.stop import Stop


class MemorySegment:
    """A few thousand passages at most: each question compares with every one of them."""

    def __init__(
        self, passages: Sequence[EncodedPassage], sequences: Sequence[int], dimension: int
    ) -> None:
        """Passages in the order of their rows, and the write that put each. Takes about 30 µs for
        each passage.
        """
        self.passages, self.sequences = tuple(passages), tuple(sequences)
        self._dimension = dimension
        vectors = np.array([each.vector for each in passages], np.float32)
        vectors = vectors.reshape(len(passages), dimension)
        self._vectors, self._index = MemoryVectors(vectors), ExactIndex(vectors)
        own = [np.array((*each.title_ids, *each.tokens.ids), np.uint32) for each in passages]
        tokens = np.concatenate([np.empty(0, np.uint32), *own])
        ends = np.cumsum([len(each) for each in own], dtype=np.int64)
        self._words, self._postings = WordIndex(tokens, ends), in_memory(tokens, ends)
        self._metadata = PassageFields([each.passage.metadata for each in passages])
        keys = zip((each.passage.id for each in passages), sequences, strict=True)
        self._rows = {key: row for row, key in enumerate(keys)}

    @property
    def rows(self) -> int:
        return len(self.passages)

    @property
    def fields(self) -> tuple[str, ...]:
        return self._metadata.names

    def nearest(
        self, vector: Vector, k: int, allowed: Rows | None = None, stop: Stop | None = None
    ) -> Found:
        return self._index.search(vector, k, allowed, stop)

    def best_by_words(
        self, terms: Terms, k: int, allowed: Rows | None = None, stop: Stop | None = None
    ) -> Found:
        return self._postings.best(terms, k, allowed, stop)

    def distances(self, vector: Vector, rows: Sequence[int]) -> NDArray[np.float32]:
        return distances_of(self._vectors, vector, rows)

    def match(self, terms: Terms, rows: Sequence[int]) -> NDArray[np.float64]:
        return self._words.match(terms, rows)

    def named(self, rows: Sequence[int]) -> list[tuple[str, int]]:
        return [(self.passages[row].passage.id, self.sequences[row]) for row in rows]

    def find(self, passage_id: str, sequence: int) -> int | None:
        return self._rows.get((passage_id, sequence))

    def load(self, row: int) -> StoredPassage:
        own = self.passages[row]
        return StoredPassage(own.passage, own.title_ids, own.tokens)

    def where(self, expression: str) -> Rows:
        return self._metadata.where(expression)

    def joined(self, *others: "MemorySegment") -> "MemorySegment":
        """One segment with the rows of this one, then those of the others in their order."""
        parts = (self, *others)
        return MemorySegment(
            [passage for part in parts for passage in part.passages],
            [sequence for part in parts for sequence in part.sequences],
            self._dimension,
        )
