"""Retrieves the best passages by BM25 from the rows of each word.

Candidates are found in single precision. Words are added from the rarest to the most frequent one.
Once no further row can be among the best, the remaining words are scored only for rows that still
can (MaxScore: Turtle and Flood 1995). The scores of the candidates are then computed bit for bit as
by `words`.
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Self

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.bm25 import (
    Floats,
    Terms,
    max_term_scores,
    saturation_counts,
    single_term_scores,
    sum_terms,
    term_scores,
)
from winnow.content_node.shard.inverting import invert
from winnow.content_node.shard.row_filter import check_stop
from winnow.content_node.shard.rows import RowMask, RowNumbers, ScoredRows
from winnow.content_node.shard.term_rows import SingleFloats, TermList, TermRows, TermTable
from winnow.content_node.shard.words import IntegerArray
from winnow.inference.stop_signal import StopSignal

_ROUNDING = 1e-4
"""Largest relative difference of two sums in single precision that are equal in double precision.

Each of 800 terms has a rounding of 6e-8. Questions have fewer terms.
"""
_FREQUENT_SHARE = 8
"""A term is kept as a table if one of this number of rows contains it.

At this share, adding the scores of a list takes as long as adding those of a table. Tables take at
most this number of bytes for each distinct token of a passage, and 56 bytes for a passage of
Wikipedia.
"""
_GROUPS_PER_HIT = 8
"""Number of groups of rows, for each row to retrieve, whose best scores bound the `k`th best one.
"""


@dataclass(frozen=True, slots=True)
class _ScoringStep:
    """A term of a question in the order of scoring, rarest first."""

    rows: TermRows
    rarity: float
    remaining_score: float
    """Upper bound of the score of this term and all later ones, in any passage."""


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
        self._tokens = np.flatnonzero(np.diff(starts))  # other tokens have no rows
        self._starts = np.append(starts[self._tokens], starts[-1])
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

    def frequencies_among(self, ids: NDArray[np.int64], allowed: RowMask) -> NDArray[np.int64]:
        """Returns how many allowed rows contain each of the ascending token ids, [ids].

        Raises:
            ArtefactError: a file was changed.

        """
        indices = np.searchsorted(self._tokens, ids).tolist()
        rows = np.flatnonzero(allowed)
        terms = map(self._read_term, ids.tolist(), indices)
        counts = [int(np.count_nonzero(each.counts(rows))) for each in terms]
        self._check()
        return np.array(counts, np.int64)

    def best(
        self,
        terms: Terms,
        k: int,
        allowed: RowMask | None = None,
        stop: StopSignal | None = None,
        others: Sequence[int] = (),
    ) -> tuple[ScoredRows, Floats]:
        """Returns the best `k` allowed rows, best first, ties by row, and the scores of `others`.

        The best rows also include all rows that equal the last one's score in single precision.

        Raises:
            StoppedError: `stop` was set.
            ArtefactError: a file was changed.

        """
        term_rows = self._read_terms(terms)
        candidates = self._find_candidates(terms, term_rows, k, allowed, stop)
        rows = np.concatenate([np.array(others, np.int64), candidates])
        scores = self._score(terms, term_rows, rows)
        scores_of_others, scores = np.split(scores, [len(others)])
        single = scores.astype(np.float32)
        if k < len(candidates):
            is_best = single >= np.partition(single, len(single) - k)[len(single) - k]
            candidates, scores = candidates[is_best], scores[is_best]
        order = np.lexsort((candidates, -scores))
        best = list(zip(candidates[order].tolist(), scores[order].tolist(), strict=True))
        return best, scores_of_others

    def _find_candidates(
        self,
        terms: Terms,
        term_rows: list[TermRows],
        k: int,
        allowed: RowMask | None,
        stop: StopSignal | None,
    ) -> RowNumbers:
        """Returns ascending rows that include the best `k`.

        Rare terms are scored for all their rows, until no other row can be among the best. The
        other terms are scored only for the rows that can.
        """
        steps = _plan_steps(terms, term_rows)
        saturations = self._saturations(terms.mean_length)
        scores = np.zeros(len(self._lengths), np.float32)
        if allowed is not None:
            scores[~allowed] = -np.inf
        done = 0
        for step in steps:
            check_stop(stop)
            # the bound takes time, too: compute it only if it can save the time of a whole table
            if (
                step.rows.covers_all_rows
                and step.remaining_score < steps[0].remaining_score / 2
                and step.remaining_score < _kth_best_bound(scores, k)
            ):
                break
            step.rows.add_scores(scores, saturations, step.rarity)
            done += 1
        gains = [step.remaining_score for step in steps[done:]] + [0.0]
        rows = _possible_best(scores, k, gains[0])
        scores = scores[rows]
        for step, gain in zip(steps[done:], gains[1:], strict=True):
            counts = step.rows.counts(rows)
            scores += single_term_scores(counts, saturations[rows], step.rarity)
            possible = _possible_best(scores, k, gain)
            rows, scores = rows[possible], scores[possible]
        return rows

    def _saturations(self, mean_length: float) -> SingleFloats:
        """Returns `saturation_counts` of every row, cached for the last mean length."""
        cached_length, saturations = self._cached_saturations
        if cached_length != mean_length:
            saturations = saturation_counts(self._lengths, mean_length).astype(np.float32)
            self._cached_saturations = mean_length, saturations
        return saturations

    def _score(self, terms: Terms, term_rows: list[TermRows], rows: RowNumbers) -> Floats:
        """Returns the BM25 scores of rows, added in the order of the terms."""
        saturations = saturation_counts(self._lengths[rows], terms.mean_length)
        scores = (
            term_scores(term.counts(rows), saturations, rarity)
            for term, rarity in zip(term_rows, terms.rarities.tolist(), strict=True)
        )
        return sum_terms(scores, len(rows))

    def _read_terms(self, terms: Terms) -> list[TermRows]:
        indices = np.searchsorted(self._tokens, terms.ids).tolist()
        term_rows = list(map(self._read_term, terms.ids.tolist(), indices))
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


def _plan_steps(terms: Terms, term_rows: Sequence[TermRows]) -> list[_ScoringStep]:
    order = np.argsort(-terms.rarities, kind="stable").tolist()
    rarities, max_scores = terms.rarities.tolist(), max_term_scores(terms.rarities).tolist()
    remaining = list(accumulate(max_scores[term] for term in reversed(order)))
    return [_ScoringStep(term_rows[term], rarities[term], remaining.pop()) for term in order]


def _possible_best(scores: SingleFloats, k: int, max_gain: float) -> RowNumbers:
    """Returns the indices of positive scores that can be among the best `k` if they gain
    `max_gain`.
    """
    bound = np.float32(_kth_best_bound(scores, k) - max_gain)
    return np.flatnonzero(scores >= bound if bound > 0 else scores > 0)


def _kth_best_bound(scores: SingleFloats, k: int) -> float:
    """Returns a lower bound of the `k`th best score; 0 if fewer than `k` scores are positive.

    Several groups of scores have a best score above the bound, so as many scores are above it.
    """
    groups = k * _GROUPS_PER_HIT
    if len(scores) > 2 * groups:
        scores = scores[: len(scores) // groups * groups].reshape(-1, groups).max(axis=0)
    kth = len(scores) - k
    best = float(np.partition(scores, kth)[kth]) if kth >= 0 else 0.0
    return max(best * (1 - _ROUNDING), 0.0)
