"""Finds the best rows by BM25 among the rows of a question's terms. Pure.

Candidates are found in single precision. Words are added from the rarest to the most frequent one.
Once no further row can be among the best, the remaining words are scored only for rows that still
can (MaxScore: Turtle and Flood 1995). The scores of the candidates are then computed bit for bit as
by `words`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

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
from winnow.content_node.shard.row_filter import check_stop
from winnow.content_node.shard.rows import RowMask, RowNumbers, ScoredRows
from winnow.content_node.shard.term_rows import SingleFloats, TermRows
from winnow.inference.stop_signal import StopSignal

_ROUNDING = 1e-4
"""Largest relative difference of two sums in single precision that are equal in double precision.

Each of 800 terms has a rounding of 6e-8. Questions have fewer terms.
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


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class WordSearch:
    """The rows of the terms of a question. Row numbers begin at 0."""

    terms: Terms
    term_rows: Sequence[TermRows]
    """The rows of each term, [terms]."""
    lengths: NDArray[np.int64]
    """Number of tokens of each row, [rows]."""
    saturations: SingleFloats
    """`saturation_counts` of each row in single precision, [rows]."""

    def best(
        self,
        k: int,
        allowed: RowMask | None = None,
        stop: StopSignal | None = None,
        others: Sequence[int] | RowNumbers = (),
    ) -> tuple[ScoredRows, Floats]:
        """Returns the best `k` allowed rows, best first, ties by row, and the scores of `others`.

        The best rows also include all rows that equal the last one's score in single precision.

        Raises:
            StoppedError: `stop` was set.

        """
        candidates = self._find_candidates(k, allowed, stop)
        rows = np.concatenate([np.array(others, np.int64), candidates])
        scores = self._score(rows)
        scores_of_others, scores = np.split(scores, [len(others)])
        single = scores.astype(np.float32)
        if k < len(candidates):
            is_best = single >= np.partition(single, len(single) - k)[len(single) - k]
            candidates, scores = candidates[is_best], scores[is_best]
        order = np.lexsort((candidates, -scores))
        best = list(zip(candidates[order].tolist(), scores[order].tolist(), strict=True))
        return best, scores_of_others

    def _find_candidates(
        self, k: int, allowed: RowMask | None, stop: StopSignal | None
    ) -> RowNumbers:
        """Returns ascending rows that include the best `k`.

        Rare terms are scored for all their rows, until no other row can be among the best. The
        other terms are scored only for the rows that can.
        """
        steps = _plan_steps(self.terms, self.term_rows)
        scores = np.zeros(len(self.lengths), np.float32)
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
            step.rows.add_scores(scores, self.saturations, step.rarity)
            done += 1
        gains = [step.remaining_score for step in steps[done:]] + [0.0]
        rows = _possible_best(scores, k, gains[0])
        scores = scores[rows]
        for step, gain in zip(steps[done:], gains[1:], strict=True):
            counts = step.rows.counts(rows)
            scores += single_term_scores(counts, self.saturations[rows], step.rarity)
            possible = _possible_best(scores, k, gain)
            rows, scores = rows[possible], scores[possible]
        return rows

    def _score(self, rows: RowNumbers) -> Floats:
        """Returns the BM25 scores of rows, added in the order of the terms."""
        saturations = saturation_counts(self.lengths[rows], self.terms.mean_length)
        scores = (
            term_scores(term.counts(rows), saturations, rarity)
            for term, rarity in zip(self.term_rows, self.terms.rarities.tolist(), strict=True)
        )
        return sum_terms(scores, len(rows))


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
