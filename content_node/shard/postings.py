"""Retrieves the best passages by BM25 from the rows of each word.

The rows of rare words are scored first. Rows of frequent words are scored only if they can be among
the best (MaxScore: Turtle and Flood 1995). Scores are bit for bit those of `words`.
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
    sum_terms,
    term_scores,
)
from winnow.content_node.shard.inverting import invert
from winnow.content_node.shard.row_filter import check_stop
from winnow.content_node.shard.rows import RowMask, RowNumbers, ScoredRows
from winnow.content_node.shard.words import IntegerArray
from winnow.inference.stop_signal import StopSignal

_ROUNDING = 1e-6
"""Relative difference of sums of the same terms by rounding, single precision included."""
_BOUND_COST = 0.25
"""Cost of `_kth_best_bound`, as a share of the cost of scoring all rows.

Measured with 19,000 rows.
"""


@dataclass(frozen=True, slots=True)
class _PostingList:
    """The rows that contain a term, and how often each contains it."""

    rows: NDArray[np.unsignedinteger]
    counts: NDArray[np.unsignedinteger]


@dataclass(frozen=True, slots=True)
class _ScoringStep:
    """A term of a question in the order of scoring, rarest first."""

    postings: _PostingList
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
        self._cached_saturations = math.nan, saturation_counts(lengths, 1.0)

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
        lists = self._posting_lists(terms)
        candidates = self._find_candidates(terms, lists, k, allowed, stop)
        rows = np.concatenate([np.array(others, np.int64), candidates])
        scores = self._score(terms, lists, rows)
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
        lists: list[_PostingList],
        k: int,
        allowed: RowMask | None,
        stop: StopSignal | None,
    ) -> RowNumbers:
        """Returns ascending rows that include the best `k`.

        Rare terms are scored for all their rows, until no other row can be among the best. The
        other terms are scored only for the rows that can.
        """
        steps = _plan_steps(terms, lists)
        saturations = self._saturations(terms.mean_length)
        scores = np.zeros(len(self._lengths))
        done = 0
        for step in steps:
            check_stop(stop)
            # the lower bound takes time, too: compute it only if it can end the loop, and pays off
            if (
                len(step.postings.rows) > len(scores) * _BOUND_COST
                and step.remaining_score < steps[0].remaining_score / 2
                and step.remaining_score < _kth_best_bound(scores, k)
            ):
                break
            own = step.postings.rows
            added = term_scores(step.postings.counts, saturations[own], step.rarity)
            scores[own] += added if allowed is None else added * allowed[own]
            done += 1
        rows = np.flatnonzero(scores != 0)  # faster on booleans than on floats
        scores = scores[rows]
        for step in steps[done:]:
            rows, scores = _keep_possible_best(rows, scores, k, step.remaining_score)
            scores += term_scores(_counts_of(step.postings, rows), saturations[rows], step.rarity)
        return _keep_possible_best(rows, scores, k, 0.0)[0]

    def _saturations(self, mean_length: float) -> Floats:
        """Returns `saturation_counts` of every row, cached for the last mean length."""
        cached_length, saturations = self._cached_saturations
        if cached_length != mean_length:
            saturations = saturation_counts(self._lengths, mean_length)
            self._cached_saturations = mean_length, saturations
        return saturations

    def _score(self, terms: Terms, lists: list[_PostingList], rows: RowNumbers) -> Floats:
        """Returns the BM25 scores of rows, added in the order of the terms."""
        saturations = self._saturations(terms.mean_length)[rows]
        scores = (
            term_scores(_counts_of(postings, rows), saturations, rarity)
            for postings, rarity in zip(lists, terms.rarities.tolist(), strict=True)
        )
        return sum_terms(scores, len(rows))

    def _posting_lists(self, terms: Terms) -> list[_PostingList]:
        indices = np.searchsorted(self._tokens, terms.ids).tolist()
        lists = list(map(self._posting_list, terms.ids.tolist(), indices))
        self._check()
        return lists

    def _posting_list(self, token: int, index: int) -> _PostingList:
        """Returns the list of a token, which is the `index`th token with rows if it has some."""
        if index == len(self._tokens) or self._tokens[index] != token:
            return _PostingList(np.empty(0, np.uint32), np.empty(0, np.uint8))
        part = slice(int(self._starts[index]), int(self._starts[index + 1]))
        return _PostingList(self._rows[part], self._counts[part])


def _counts_of(postings: _PostingList, rows: RowNumbers) -> NDArray[np.unsignedinteger]:
    """Returns how often each of `rows` contains the term, [rows]."""
    if not len(postings.rows):
        return np.zeros(len(rows), np.uint8)
    same_type = rows.astype(postings.rows.dtype)  # otherwise numpy converts the whole list
    indices = postings.rows.searchsorted(same_type)
    indices[indices == len(postings.rows)] = 0
    return np.where(postings.rows[indices] == same_type, postings.counts[indices], 0)


def _plan_steps(terms: Terms, lists: Sequence[_PostingList]) -> list[_ScoringStep]:
    order = np.argsort(-terms.rarities, kind="stable").tolist()
    rarities, max_scores = terms.rarities.tolist(), max_term_scores(terms.rarities).tolist()
    remaining = list(accumulate(max_scores[term] for term in reversed(order)))
    return [_ScoringStep(lists[term], rarities[term], remaining.pop()) for term in order]


def _keep_possible_best(
    rows: RowNumbers, scores: Floats, k: int, max_gain: float
) -> tuple[RowNumbers, Floats]:
    """Returns the rows, with scores, that can be among the best `k` if they gain `max_gain`."""
    can_win = scores + max_gain >= _kth_best_bound(scores, k)
    return rows[can_win], scores[can_win]


def _kth_best_bound(scores: Floats, k: int) -> float:
    """Returns a lower bound of the `k`th best score; 0 if fewer than `k` scores are positive."""
    positive = scores[np.flatnonzero(scores > 0)]  # faster than indexing by a mask
    kth = len(positive) - k
    return float(np.partition(positive, kth)[kth]) * (1 - _ROUNDING) if kth >= 0 else 0.0
