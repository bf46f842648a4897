"""Passages that equal many others: of each group a question needs only those with the first ids.

Rows with equal vectors and equal tokens have the same distance and the same BM25 for every
question. Only ids decide among them. So a question that wants `n` passages needs the first `n` of a
group, for any number of shards.

Rows with equal vectors may differ in tokens, if an encoder cuts long passages at the same place.
Their distances are equal and their BM25 is not. One such row leads to all of them, and none is left
out.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.rows import RowMask, RowNumbers

MANY = 32
"""Rows of a group up to which it is cheap to look at each."""
_SEED = np.random.SeedSequence().entropy
"""Differs in every process, so nobody can make vectors that only seem equal."""


class EqualPassages:
    """Groups of more than `MANY` equal rows. Never changes."""

    def __init__(
        self,
        groups: Sequence[RowNumbers] = (),
        rows: int = 0,
        same_vectors: Sequence[RowNumbers] | None = None,
    ) -> None:
        """Takes the rows of each group, ordered by id, of a segment with `rows` rows.

        `same_vectors` are groups of rows with equal vectors and any tokens; each of `groups` lies
        within one. None says that they are the same groups.
        """
        self._groups = tuple(groups)
        self._same_vectors = self._groups if same_vectors is None else tuple(same_vectors)
        self._vector = np.full(rows if self._same_vectors else 0, -1, np.int32)
        """Number of each row's group of equal vectors; -1 for none."""
        for number, group in enumerate(self._same_vectors):
            self._vector[group] = number

    def __bool__(self) -> bool:
        return bool(self._same_vectors)

    def thinned(self, allowed: RowMask | None, most: int) -> RowMask | None:
        """Returns the allowed rows with at most `most` of each group: the first ones by id.

        None stands for all rows. The argument is not changed.
        """
        if all(len(group) <= most for group in self._groups):
            return allowed
        mask = np.ones(len(self._vector), np.bool_) if allowed is None else allowed.copy()
        for group in self._groups:
            mask[group[mask[group]][most:]] = False
        return mask

    def reachable(self, allowed: RowMask) -> int:
        """Counts the rows that are allowed or share their vector with an allowed row."""
        if not self._same_vectors:
            return int(np.count_nonzero(allowed))
        leading = allowed.copy()
        for group in self._same_vectors:
            leading[group] = bool(allowed[group].any())
        return int(np.count_nonzero(leading))

    def all_in(self, rows: Sequence[int]) -> bool:
        """Whether each of `rows` is in a group of equal vectors."""
        return bool(self._same_vectors) and bool((self._vector[list(rows)] >= 0).all())

    def completed(
        self, rows: NDArray[np.integer], distances: NDArray[np.float32]
    ) -> tuple[NDArray[np.integer], NDArray[np.float32]]:
        """Adds all rows that have the vector of one of `rows`, with the same distance."""
        if not self._same_vectors:
            return rows, distances
        numbers = self._vector[rows]
        inside = numbers >= 0
        found, first = np.unique(numbers[inside], return_index=True)
        members = [self._same_vectors[number] for number in found.tolist()]
        shared = np.repeat(distances[inside][first], list(map(len, members)))
        return (
            np.concatenate([rows[~inside].astype(np.int64), *members]),
            np.concatenate([distances[~inside], shared]),
        )


def hashed(vectors: NDArray[np.float32]) -> NDArray[np.uint64]:
    """Hashes each row of float32 [rows, dimension] by its bits."""
    factors = np.random.default_rng(_SEED).integers(
        1 << 63, size=vectors.shape[1], dtype=np.uint64, endpoint=True
    )
    words = np.ascontiguousarray(vectors, np.float32).view(np.uint32)
    return words.astype(np.uint64) @ (factors | np.uint64(1))


def groups_of(hashes: NDArray[np.uint64]) -> list[RowNumbers]:
    """Returns groups of more than `MANY` places with the same hash, each ascending."""
    order = np.argsort(hashes, kind="stable")
    starts = np.flatnonzero(np.diff(hashes[order])) + 1
    ends = pairwise([0, *starts.tolist(), len(order)])
    return [order[begin:end] for begin, end in ends if end - begin > MANY]


def equal_passages(
    same_vectors: Sequence[RowNumbers],
    tokens: Callable[[int], bytes],
    by_id: Callable[[], RowNumbers],
    rows: int,
) -> EqualPassages:
    """Finds the groups of a segment with `rows` rows.

    `same_vectors` are groups with equal vectors, from `groups_of`. Without any, neither `tokens` of
    a row nor the rows `by_id` are looked at; these are the rows that hold a passage, ordered by id.
    """
    if not same_vectors:
        return EqualPassages()
    places = np.full(rows, -1, np.int64)
    ordered = by_id()
    places[ordered] = np.arange(len(ordered))
    held = [group[places[group] >= 0] for group in same_vectors]
    groups = [part for group in held for part in _by_tokens(group, tokens, places)]
    return EqualPassages(groups, rows, held)


def _by_tokens(
    group: RowNumbers, tokens: Callable[[int], bytes], places: RowNumbers
) -> list[RowNumbers]:
    parts: dict[bytes, list[int]] = {}
    for row in group[np.argsort(places[group])].tolist():
        parts.setdefault(tokens(row), []).append(row)
    return [np.array(part, np.int64) for part in parts.values() if len(part) > MANY]
