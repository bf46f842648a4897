"""The rows of every token of a segment, read for the words of a question."""

import math
from collections.abc import Callable, Sequence
from typing import Self

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.bm25 import Floats, Terms, saturation_counts
from winnow.content_node.shard.inverting import invert
from winnow.content_node.shard.rows import RowList, RowNumbers, ScoredRows, SelectedRows
from winnow.content_node.shard.term_rows import SingleFloats, TermList, TermRows, TermTable
from winnow.content_node.shard.word_search import WordSearch
from winnow.content_node.shard.words import IntegerArray
from winnow.inference.stop_signal import StopSignal

_FREQUENT_SHARE = 8
"""A term is kept as a table if one of this number of rows contains it.

At this share, adding the scores of a list takes as long as adding those of a table. Tables take at
most this number of bytes for each distinct token of a passage, and 56 bytes for a passage of
Wikipedia.
"""


class Postings:
    """The rows of every token. Safe to use from several threads."""

    def __init__(
        self,
        *,
        starts: RowNumbers,
        rows: IntegerArray,
        counts: IntegerArray,
        lengths: NDArray[np.int64],
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Takes the fields of `InvertedTokens`, and the number of tokens of each row, [rows].

        `check` is called after reading; it raises if a file was changed.
        """
        tokens = np.flatnonzero(np.diff(starts))  # other tokens have no rows
        begins = np.append(starts[tokens], starts[-1])
        # a node may have hundreds of shards
        self._tokens = tokens.astype(np.uint32)
        self._starts = begins.astype(np.min_scalar_type(begins[-1]))
        self._rows, self._counts, self._lengths, self._check = rows, counts, lengths, check
        self._cached_saturations = math.nan, np.zeros(0, np.float32)
        self._tables: dict[int, TermTable] = {}
        """The frequent tokens of earlier questions, by token."""

    @classmethod
    def from_tokens(cls, tokens: NDArray[np.unsignedinteger], ends: NDArray[np.int64]) -> Self:
        """Inverts `tokens`, stored row after row. The tokens of row i end at `ends[i]`."""
        inverted, lengths = invert(tokens, ends), np.diff(ends, prepend=0)
        return cls(
            starts=inverted.starts, rows=inverted.rows, counts=inverted.counts, lengths=lengths
        )

    @property
    def frequencies(self) -> NDArray[np.int64]:
        """Number of rows that contain each token, [greatest token + 1]."""
        frequencies = np.zeros(int(self._tokens[-1]) + 1 if len(self._tokens) else 0, np.int64)
        frequencies[self._tokens] = np.diff(self._starts)
        return frequencies

    def frequencies_among(self, ids: NDArray[np.int64], selected: RowList) -> NDArray[np.int64]:
        """Returns how many of the selected rows contain each of the ascending token ids, [ids].

        Raises:
            ArtefactError: a file was changed.

        """
        terms = self._read_rows(ids)
        return np.array([each.among(selected).frequency for each in terms], np.int64)

    def best(
        self,
        terms: Terms,
        k: int,
        allowed: SelectedRows = None,
        stop: StopSignal | None = None,
        others: Sequence[int] = (),
    ) -> tuple[ScoredRows, Floats]:
        """Returns the best `k` allowed rows, best first, ties by row, and the scores of `others`.

        The best rows also include all rows that equal the last one's score in single precision. If
        `allowed` is a list, `others` must be a part of it.

        Raises:
            StoppedError: `stop` was set.
            ArtefactError: a file was changed.

        """
        term_rows = self._read_rows(terms.ids)
        if isinstance(allowed, RowList):
            return self._best_of_list(terms, term_rows, k, allowed, stop, others)
        search = WordSearch(
            terms=terms,
            term_rows=term_rows,
            lengths=self._lengths,
            saturations=self._saturations(terms.mean_length),
        )
        return search.best(k, allowed, stop, others)

    def _best_of_list(
        self,
        terms: Terms,
        term_rows: Sequence[TermRows],
        k: int,
        selected: RowList,
        stop: StopSignal | None,
        others: Sequence[int],
    ) -> tuple[ScoredRows, Floats]:
        """Searches as in a segment that has only the selected rows."""
        lengths = selected.values_of(self._lengths)
        search = WordSearch(
            terms=terms,
            term_rows=[each.among(selected) for each in term_rows],
            lengths=lengths,
            saturations=saturation_counts(lengths, terms.mean_length).astype(np.float32),
        )
        best, scores = search.best(k, None, stop, np.searchsorted(selected.rows, others))
        rows = selected.rows[[index for index, _ in best]].tolist()
        return [(row, score) for row, (_, score) in zip(rows, best, strict=True)], scores

    def _saturations(self, mean_length: float) -> SingleFloats:
        """Returns `saturation_counts` of every row, cached for the last mean length."""
        cached_length, saturations = self._cached_saturations
        if cached_length != mean_length:
            saturations = saturation_counts(self._lengths, mean_length).astype(np.float32)
            self._cached_saturations = mean_length, saturations
        return saturations

    def _read_rows(self, ids: NDArray[np.int64]) -> list[TermRows]:
        """Returns the rows of each of the ascending tokens, [ids]."""
        # numpy would convert all tokens if the types differed
        indices = np.searchsorted(self._tokens, ids.astype(np.uint32)).tolist()
        term_rows = list(map(self._read_term, ids.tolist(), indices))
        self._check()
        return term_rows

    def _read_term(self, token: int, index: int) -> TermRows:
        """Returns the rows of a token, which is the `index`th token with rows if it has some."""
        if table := self._tables.get(token):
            return table
        if index == len(self._tokens) or self._tokens[index] != token:
            return TermList(np.empty(0, np.uint32), np.empty(0, np.uint8))
        part = slice(int(self._starts[index]), int(self._starts[index + 1]))
        own = TermList(self._rows[part], self._counts[part])
        if len(own.rows) * _FREQUENT_SHARE < len(self._lengths):
            return own
        table = TermTable.from_list(own, len(self._lengths))
        self._check()  # a table is kept: do not keep one of a changed file
        self._tables[token] = table
        return table
