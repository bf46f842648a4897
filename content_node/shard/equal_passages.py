"""Passages that equal many others: of each such group a question needs those with the first ids.

Rows with the same vector and the same tokens have the same distance and the same BM25 for every
question. Ids alone decide among them, so no more of a group than are wanted can be chosen, for any
number of shards.

Rows with the same vector may have other tokens, where an encoder cuts long passages at the same
place. Then distances are equal and BM25 is not: one row leads to all of them, and none is left out.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.segment import Rows

MANY = 32
"""Rows of a group up to which it costs little to look at each."""
_SEED = np.random.SeedSequence().entropy
"""Another one in every process: nobody can make vectors that only seem equal."""
Numbers = NDArray[np.int64]


class EqualPassages:
    """Groups of rows that have more than a few members. Never changes."""

    def __init__(
        self,
        groups: Sequence[Numbers] = (),
        rows: int = 0,
        same_vectors: Sequence[Numbers] | None = None,
    ) -> None:
        """The rows of each group, by their ids; `rows` is the number of rows of the segment.

        `same_vectors` are groups of rows with equal vectors and any tokens: each of
        `groups` is within one. None where these are the same.
        """
        self._groups = tuple(groups)
        self._same_vectors = self._groups if same_vectors is None else tuple(same_vectors)
        self._vector = np.full(rows if self._same_vectors else 0, -1, np.int32)
        """The group of equal vectors of each row; -1 for none."""
        for number, group in enumerate(self._same_vectors):
            self._vector[group] = number

    def __bool__(self) -> bool:
        return bool(self._same_vectors)

    def thinned(self, allowed: Rows | None, most: int) -> Rows | None:
        """The allowed rows without those of a group that come after its first `most`, by id.

        None for all; what is given is not changed.
        """
        if all(len(group) <= most for group in self._groups):
            return allowed
        mask = np.ones(len(self._vector), np.bool_) if allowed is None else allowed.copy()
        for group in self._groups:
            mask[group[mask[group]][most:]] = False
        return mask

    def reachable(self, allowed: Rows) -> int:
        """How many rows lead to an allowed one, if a row leads to all that have its vector."""
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
        """Rows with their distances, and all that have the vector of one of them."""
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
    """A number for each of float32 [rows, dimension]; the same for the same bits."""
    factors = np.random.default_rng(_SEED).integers(
        1 << 63, size=vectors.shape[1], dtype=np.uint64, endpoint=True
    )
    words = np.ascontiguousarray(vectors, np.float32).view(np.uint32)
    return words.astype(np.uint64) @ (factors | np.uint64(1))


def groups_of(hashes: NDArray[np.uint64]) -> list[Numbers]:
    """Places with the same number, ascending; of groups with more than `MANY`."""
    order = np.argsort(hashes, kind="stable")
    starts = np.flatnonzero(np.diff(hashes[order])) + 1
    ends = pairwise([0, *starts.tolist(), len(order)])
    return [order[begin:end] for begin, end in ends if end - begin > MANY]


def equal_passages(
    same_vectors: Sequence[Numbers],
    tokens: Callable[[int], bytes],
    by_id: Callable[[], Numbers],
    rows: int,
) -> EqualPassages:
    """The groups of a segment with so many rows; `by_id` are those that hold a passage, by id.

    `same_vectors` are those whose vectors are equal, as `groups_of` gives them. Only if there are
    any, tokens and ids are looked at.
    """
    if not same_vectors:
        return EqualPassages()
    places = np.full(rows, -1, np.int64)
    ordered = by_id()
    places[ordered] = np.arange(len(ordered))
    held = [group[places[group] >= 0] for group in same_vectors]
    groups = [part for group in held for part in _by_tokens(group, tokens, places)]
    return EqualPassages(groups, rows, held)


def _by_tokens(group: Numbers, tokens: Callable[[int], bytes], places: Numbers) -> list[Numbers]:
    parts: dict[bytes, list[int]] = {}
    for row in group[np.argsort(places[group])].tolist():
        parts.setdefault(tokens(row), []).append(row)
    return [np.array(part, np.int64) for part in parts.values() if len(part) > MANY]
