"""Computes the BM25 scores of given passages from their tokens, which are stored row after row.

The passages were retrieved by their vectors. `postings` retrieves passages by words.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.bm25 import Terms, saturation_counts, sum_terms, term_scores
from winnow.content_node.shard.rows import RowNumbers
from winnow.files.stored_array import StoredArray


class IntegerArray(Protocol):
    """An array of unsigned integers in memory or on disk."""

    def __len__(self) -> int: ...

    def __getitem__(self, part: slice, /) -> NDArray[np.unsignedinteger]: ...


class WordIndex:
    """The tokens of every passage. Safe to use from several threads."""

    def __init__(
        self,
        tokens: IntegerArray,
        ends: NDArray[np.int64],
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Takes the tokens of titles and texts, row after row, and the end of each row's tokens.

        `check` is called after each read; it raises if the file was changed.
        """
        self._tokens, self._ends, self._check = tokens, ends, check

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of tokens of each row, [rows]; 0 for an empty row."""
        return np.diff(self._ends, prepend=0)

    def tokens(self, row: int) -> bytes:
        """Returns the tokens of a row's title and text, as bytes of their stored type."""
        begin = int(self._ends[row - 1]) if row else 0
        return self._tokens[begin : int(self._ends[row])].tobytes()

    def count_tokens(self, rows: RowNumbers) -> int:
        """Returns the number of tokens of all `rows` together."""
        begins, ends = self._spans(rows)
        return int((ends - begins).sum())

    def bm25_scores(self, terms: Terms, rows: Sequence[int]) -> NDArray[np.float64]:
        """Returns the BM25 score of each of `rows`, [rows].

        Raises:
            ArtefactError: the file of the tokens was changed.

        """
        if not rows or not len(terms.ids):
            return np.zeros(len(rows))
        begins, ends = self._spans(np.array(rows))
        tokens = _read_slices(self._tokens, begins, ends)
        self._check()
        lengths = ends - begins
        counts = _count_terms(tokens, lengths, terms)
        saturations = saturation_counts(lengths, terms.mean_length)
        scores = (
            term_scores(counts[:, number], saturations, rarity)
            for number, rarity in enumerate(terms.rarities.tolist())
        )
        return sum_terms(scores, len(rows))

    def _spans(self, rows: RowNumbers) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Returns where the tokens of each row begin and end."""
        return np.where(rows, self._ends[rows - 1], 0), self._ends[rows]


def _read_slices(
    tokens: IntegerArray, begins: NDArray[np.int64], ends: NDArray[np.int64]
) -> NDArray[np.unsignedinteger]:
    """Returns the concatenated tokens of the rows that begin at `begins` and end at `ends`."""
    if isinstance(tokens, StoredArray):
        return tokens.read_slices(begins, ends)
    return np.concatenate(
        [tokens[a:b] for a, b in zip(begins.tolist(), ends.tolist(), strict=True)]
    )


def _count_terms(
    all_tokens: NDArray[np.unsignedinteger], lengths: NDArray[np.int64], terms: Terms
) -> NDArray[np.int64]:
    """Returns how often each row contains each term, [rows, terms].

    `all_tokens` are the concatenated tokens of the rows, `lengths` their numbers of tokens.
    """
    rows, size = len(lengths), len(terms.ids)
    other = int(terms.ids[-1]) + 1
    bin_of_token = np.full(other + 1, size)
    bin_of_token[terms.ids] = np.arange(size)
    tokens = np.minimum(all_tokens.astype(np.int64), other)
    # one bin for each term of each row, and one for all other tokens of the row
    first_bins = np.repeat(np.arange(rows), lengths) * (size + 1)
    counts = np.bincount(first_bins + bin_of_token[tokens], minlength=rows * (size + 1))
    return counts.reshape(rows, -1)[:, :size]
