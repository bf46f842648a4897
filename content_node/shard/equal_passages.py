"""Groups of equal passages, of which a question needs only the first ones by id.

Rows with equal vectors and equal tokens have the same distance and the same BM25 score for every
question, so only their ids decide their order. A question for `n` passages therefore needs only the
first `n` of each group, for any number of shards.

Rows with equal vectors may differ in tokens, if an encoder truncates long passages. Their distances
are equal, their BM25 scores are not. Finding one such row yields all of them.
"""

from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.rows import RowList, RowMask, RowNumbers

MAX_UNGROUPED = 32
"""Groups of at most this number of equal rows are not kept, because comparing each row is cheap."""
_HASH_SEED = np.random.SeedSequence().entropy
"""Differs in every process, so that nobody can craft different vectors with equal hashes."""


class EqualPassages:
    """Groups of more than `MAX_UNGROUPED` equal rows. Immutable."""

    def __init__(
        self,
        groups: Sequence[RowNumbers] = (),
        rows: int = 0,
        vector_groups: Sequence[RowNumbers] | None = None,
    ) -> None:
        """Takes the groups of a segment.

        Args:
            groups: rows with equal vectors and equal tokens. Each group is ordered by id.
            rows: number of rows of the segment.
            vector_groups: rows with equal vectors; their tokens may differ. Each of `groups` is a
                part of one of them. None if they are the same as `groups`.

        """
        self._groups = tuple(groups)
        self._vector_groups = self._groups if vector_groups is None else tuple(vector_groups)
        self._group_of_row = np.full(rows if self._vector_groups else 0, -1, np.int32)
        """Index of each row's group in `_vector_groups`; -1 for none."""
        for number, group in enumerate(self._vector_groups):
            self._group_of_row[group] = number

    def __bool__(self) -> bool:
        return bool(self._vector_groups)

    def limit_groups(self, allowed: RowMask | None, limit: int) -> RowMask | None:
        """Returns the allowed rows, with at most `limit` rows of each group: the first by id.

        None stands for all rows. The argument is not changed.
        """
        if self._are_within(limit):
            return allowed
        mask = np.ones(len(self._group_of_row), np.bool_) if allowed is None else allowed.copy()
        for group in self._groups:
            mask[group[mask[group]][limit:]] = False
        return mask

    def limit_listed(self, listed: RowList, limit: int) -> RowList:
        """Returns the rows of a list, with at most `limit` rows of each group, as above."""
        if self._are_within(limit):
            return listed
        limited = self.limit_groups(listed.mask(len(self._group_of_row)), limit)
        assert limited is not None  # a mask was given
        return listed.matching(limited)

    def count_reachable(self, allowed: RowMask) -> int:
        """Counts the rows that are allowed or share their vector with an allowed row."""
        reachable = allowed.copy()
        for group in self._vector_groups:
            reachable[group] = bool(allowed[group].any())
        return int(np.count_nonzero(reachable))

    def contains_all(self, rows: Sequence[int]) -> bool:
        """Whether each of `rows` is in a group of equal vectors."""
        return bool(self) and bool((self._group_of_row[list(rows)] >= 0).all())

    def add_equal_rows(
        self, rows: NDArray[np.integer], distances: NDArray[np.float32]
    ) -> tuple[NDArray[np.integer], NDArray[np.float32]]:
        """Adds all rows that have the vector of one of `rows`, with the same distance."""
        if not self:
            return rows, distances
        groups = self._group_of_row[rows]
        grouped = groups >= 0
        numbers, first = np.unique(groups[grouped], return_index=True)
        members = [self._vector_groups[number] for number in numbers.tolist()]
        shared = np.repeat(distances[grouped][first], list(map(len, members)))
        return (
            np.concatenate([rows[~grouped].astype(np.int64), *members]),
            np.concatenate([distances[~grouped], shared]),
        )

    def _are_within(self, limit: int) -> bool:
        """Whether no group has more than `limit` rows."""
        return all(len(group) <= limit for group in self._groups)


def hash_vectors(vectors: NDArray[np.float32]) -> NDArray[np.uint64]:
    """Hashes each vector of float32 [rows, dimension] by its bits."""
    factors = np.random.default_rng(_HASH_SEED).integers(
        1 << 63, size=vectors.shape[1], dtype=np.uint64, endpoint=True
    )
    words = np.ascontiguousarray(vectors, np.float32).view(np.uint32)
    return words.astype(np.uint64) @ (factors | np.uint64(1))


def group_equal(hashes: NDArray[np.uint64]) -> list[RowNumbers]:
    """Returns groups of more than `MAX_UNGROUPED` indices with equal hashes, each ascending."""
    order = np.argsort(hashes, kind="stable")
    starts = np.flatnonzero(np.diff(hashes[order])) + 1
    ends = pairwise([0, *starts.tolist(), len(order)])
    return [order[begin:end] for begin, end in ends if end - begin > MAX_UNGROUPED]


def find_equal_passages(
    vector_groups: Sequence[RowNumbers],
    tokens: Callable[[int], bytes],
    rows_by_id: Callable[[], RowNumbers],
    rows: int,
) -> EqualPassages:
    """Finds the groups of equal passages in a segment with `rows` rows.

    `vector_groups` are groups of rows with equal vectors, from `group_equal`. `tokens` returns the
    tokens of a row, `rows_by_id` the occupied rows ordered by id; called only if there are groups.
    """
    if not vector_groups:
        return EqualPassages()
    id_rank = np.full(rows, -1, np.int64)
    ordered = rows_by_id()
    id_rank[ordered] = np.arange(len(ordered))
    occupied = [group[id_rank[group] >= 0] for group in vector_groups]
    groups = [part for group in occupied for part in _split_by_tokens(group, tokens, id_rank)]
    return EqualPassages(groups, rows, occupied)


def _split_by_tokens(
    group: RowNumbers, tokens: Callable[[int], bytes], id_rank: RowNumbers
) -> list[RowNumbers]:
    parts: dict[bytes, list[int]] = {}
    for row in group[np.argsort(id_rank[group])].tolist():
        parts.setdefault(tokens(row), []).append(row)
    return [np.array(part, np.int64) for part in parts.values() if len(part) > MAX_UNGROUPED]
