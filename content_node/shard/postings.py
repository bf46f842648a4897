"""From the words of a question to the passages that have them: the best by BM25.

The rows of rare words are scored first. Rows of frequent words are scored only as far as they can
matter (MaxScore: Turtle and Flood 1995). Scores are bit for bit those of `words`.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.bm25 import Floats, Terms, added, most, room, worth
from winnow.content_node.shard.inverting import inverted
from winnow.content_node.shard.row_filter import check_stop
from winnow.content_node.shard.rows import RowMask, RowNumbers, ScoredRows
from winnow.content_node.shard.words import Integers
from winnow.inference.stop import Stop

_SLACK = 1e-6
"""Share of a score by which sums of the same terms may differ, single precision included."""
_WORTH_BOUNDING = 0.25
"""Rows of terms, as a share of all rows, that take as long to score as finding the score of the
best `k` takes.
"""


@dataclass(frozen=True, slots=True)
class _List:
    """The rows that have a term, and how often each has it."""

    rows: NDArray[np.unsignedinteger]
    counts: NDArray[np.unsignedinteger]


@dataclass(frozen=True, slots=True)
class _Term:
    """A term of a question in the order of scoring, rarest first."""

    having: _List
    rarity: float
    left: float
    """Upper bound of what this term and all later ones are worth, in any passage."""
    to_come: int
    """Number of rows of this term and all later ones."""


class Postings:
    """The rows of every token. Safe to use from several threads."""

    def __init__(
        self, *, starts: RowNumbers, rows: Integers, counts: Integers, lengths: NDArray[np.int64]
    ) -> None:
        """`starts` says where the rows of each token begin, [greatest token + 2]. `lengths` are the
        numbers of tokens of each row, [rows].
        """
        self._tokens = np.flatnonzero(np.diff(starts))  # other tokens have no rows
        self._starts = np.append(starts[self._tokens], starts[-1])
        self._rows, self._counts, self._lengths = rows, counts, lengths
        self._known_rooms = math.nan, room(lengths, 1.0)

    @classmethod
    def of(cls, tokens: NDArray[np.unsignedinteger], ends: NDArray[np.int64]) -> Self:
        """Inverts the tokens of all rows, row after row; those of each row end at `ends`."""
        made, lengths = inverted(tokens, ends), np.diff(ends, prepend=0)
        return cls(starts=made.starts, rows=made.rows, counts=made.counts, lengths=lengths)

    @property
    def frequencies(self) -> NDArray[np.int64]:
        """Number of rows that have each token, [greatest token + 1]."""
        having = np.zeros(int(self._tokens[-1]) + 1 if len(self._tokens) else 0, np.int64)
        having[self._tokens] = np.diff(self._starts)
        return having

    def best(
        self, terms: Terms, k: int, allowed: RowMask | None = None, stop: Stop | None = None
    ) -> ScoredRows:
        """Returns the best `k` of the allowed rows, best first, ties by row; and all rows that are
        as good as the last of them in single precision.

        Raises:
            StoppedError: `stop` was set.
            ArtefactError: a file was written to.

        """
        lists = [self._list(int(token)) for token in terms.ids]
        rows = self._candidates(terms, lists, k, allowed, stop)
        scores = self._scores(terms, lists, rows)
        single = scores.astype(np.float32)
        if k < len(rows):
            good = single >= np.partition(single, len(rows) - k)[len(rows) - k]
            rows, scores = rows[good], scores[good]
        order = np.lexsort((rows, -scores))
        return list(zip(rows[order].tolist(), scores[order].tolist(), strict=True))

    def _candidates(
        self, terms: Terms, lists: list[_List], k: int, allowed: RowMask | None, stop: Stop | None
    ) -> RowNumbers:
        """Returns rows, ascending, with the best `k` among them.

        Rare terms are scored for all rows that have them, until no other row can be among the best.
        The other terms are scored only for rows that still can.
        """
        rare_first = _rare_first(terms, lists)
        rooms = self._rooms(terms.mean_length)
        scores = np.zeros(len(self._lengths))
        place = 0
        for term in rare_first:
            check_stop(stop)
            # the bound takes time, too: only where it may end the loop, and save as much
            if (
                term.left < rare_first[0].left / 2
                and term.to_come > len(scores) * _WORTH_BOUNDING
                and term.left < _least(scores, k)
            ):
                break
            own = term.having.rows
            gained = worth(term.having.counts, rooms[own], term.rarity)
            scores[own] += gained if allowed is None else gained * allowed[own]
            place += 1
        rows = np.flatnonzero(scores)
        scores = scores[rows]
        for term in rare_first[place:]:
            rows, scores = _possible(rows, scores, k, term.left)
            scores += worth(_counts(term.having, rows), rooms[rows], term.rarity)
        return _possible(rows, scores, k, 0.0)[0]

    def _rooms(self, mean_length: float) -> Floats:
        """Returns the room of every row; equal for all questions until passages are put or
        deleted.
        """
        known_for, rooms = self._known_rooms
        if known_for != mean_length:
            rooms = room(self._lengths, mean_length)
            self._known_rooms = mean_length, rooms
        return rooms

    def _scores(self, terms: Terms, lists: list[_List], rows: RowNumbers) -> Floats:
        """Returns BM25 of rows, added up in the order of `bm25.added`."""
        rooms = self._rooms(terms.mean_length)[rows]
        rarities = terms.rarities.tolist()
        worths = (
            worth(_counts(own, rows), rooms, rarity)
            for own, rarity in zip(lists, rarities, strict=True)
        )
        return added(worths, len(rows))

    def _list(self, token: int) -> _List:
        place = int(np.searchsorted(self._tokens, token))
        if place == len(self._tokens) or self._tokens[place] != token:
            return _List(np.empty(0, np.uint32), np.empty(0, np.uint8))
        part = slice(int(self._starts[place]), int(self._starts[place + 1]))
        return _List(self._rows[part], self._counts[part])


def _counts(own: _List, rows: RowNumbers) -> NDArray[np.unsignedinteger]:
    """Returns how often each of `rows` has the term, [rows]."""
    if not len(own.rows):
        return np.zeros(len(rows), np.uint8)
    wanted = rows.astype(own.rows.dtype)  # else numpy would convert the whole list
    places = np.minimum(np.searchsorted(own.rows, wanted), len(own.rows) - 1)
    return np.where(own.rows[places] == rows, own.counts[places], 0)


def _rare_first(terms: Terms, lists: Sequence[_List]) -> list[_Term]:
    order = np.argsort(-terms.rarities, kind="stable").tolist()
    left = np.cumsum(most(terms.rarities)[order][::-1])[::-1].tolist()
    to_come = np.cumsum([len(lists[term].rows) for term in order][::-1])[::-1].tolist()
    rarities = terms.rarities[order].tolist()
    return list(map(_Term, [lists[term] for term in order], rarities, left, to_come))


def _possible(rows: RowNumbers, scores: Floats, k: int, left: float) -> tuple[RowNumbers, Floats]:
    """Returns the rows that may be among the best `k` if each gains at most `left`, with scores."""
    good = scores + left >= _least(scores, k)
    return rows[good], scores[good]


def _least(scores: Floats, k: int) -> float:
    """Returns a lower bound of the best `k` scores, less rounding; 0 if fewer were scored."""
    scored = scores[scores > 0]
    worst = len(scored) - k
    return float(np.partition(scored, worst)[worst]) * (1 - _SLACK) if worst >= 0 else 0.0
