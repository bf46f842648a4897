"""From the words of a question to the passages that have them: the best by BM25.

The rows of rare words are scored first, and those of frequent ones only as far as they can matter
(MaxScore: Turtle and Flood 1995). Scores are bit for bit those of `content_node.shard.words`.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.bm25 import Floats, added, most, room, worth
from winnow.content_node.shard.inverting import inverted
from winnow.content_node.shard.manifest import WordsEntry
from winnow.content_node.shard.segment import Found, Rows, Terms
from winnow.errors import ArtefactError, StoppedError
from winnow.files.opened import OpenFile
from winnow.files.stored_array import StoredArray, integers
from winnow.inference.stop import Stop

_SLACK = 1e-6
"""Share of a score by which sums of the same terms differ at most, and single precision."""
_WORTH_LOOKING = 0.25
"""Rows of terms, as a share of all rows, that take as long to score as to look how good the best
are.
"""
_BLOCK = 1 << 20
"""Values that are looked at at a time when a file is opened."""


class Values(Protocol):
    """Unsigned integers in memory or on disk."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: slice, /) -> NDArray[np.unsignedinteger]: ...


@dataclass(frozen=True, slots=True)
class _List:
    """The rows that have a term."""

    rows: NDArray[np.unsignedinteger]
    counts: NDArray[np.unsignedinteger]


@dataclass(frozen=True, slots=True)
class _Term:
    """A term of a question among the others, the rarest of which come first."""

    having: _List
    rarity: float
    left: float
    """What it and all that come after it are worth at most, in any passage."""
    to_come: int
    """Rows of it and of all that come after it."""


class Postings:
    """The rows of every token. Safe to use from several threads."""

    def __init__(
        self,
        tokens: NDArray[np.int64],
        starts: NDArray[np.int64],
        rows: Values,
        counts: Values,
        lengths: NDArray[np.int64],
    ) -> None:
        """Tokens, ascending, and where their rows begin, [tokens + 1]. `lengths` are the tokens of
        each row, [rows].
        """
        self._tokens, self._starts, self._lengths = tokens, starts, lengths
        self._rows, self._counts = rows, counts
        self._known_rooms = math.nan, room(lengths, 1.0)

    @property
    def frequencies(self) -> NDArray[np.int64]:
        """How many rows have each token, [greatest token + 1]."""
        having = np.zeros(int(self._tokens[-1]) + 1 if len(self._tokens) else 0, np.int64)
        having[self._tokens] = np.diff(self._starts)
        return having

    def best(
        self, terms: Terms, k: int, allowed: Rows | None = None, stop: Stop | None = None
    ) -> Found:
        """The best `k` of the allowed rows, best first, ties by row; and all that are as good as
        the last of them in single precision.

        Raises:
            StoppedError: `stop` was set.
            ArtefactError: a file was written to.

        """
        lists = [self._list(int(token)) for token in terms.ids]
        rows = self._contenders(terms, lists, k, allowed, stop)
        scores = self._scores(terms, lists, rows)
        single = scores.astype(np.float32)
        if k < len(rows):
            good = single >= np.partition(single, len(rows) - k)[len(rows) - k]
            rows, scores = rows[good], scores[good]
        order = np.lexsort((rows, -scores))
        return list(zip(rows[order].tolist(), scores[order].tolist(), strict=True))

    def _contenders(
        self, terms: Terms, lists: list[_List], k: int, allowed: Rows | None, stop: Stop | None
    ) -> NDArray[np.int64]:
        """Rows, ascending, with the best among them.

        The rare terms are scored for all rows that have them, until no other row can be among the
        best; those that are left only for rows that still can.
        """
        rare_first = _rare_first(terms, lists)
        rooms = self._rooms(terms.mean_length)
        scores = np.zeros(len(self._lengths))
        place = 0
        for term in rare_first:
            if stop is not None and stop.is_set:
                raise StoppedError("the search was ended")
            # looking takes time, too: only where it may end this, and save as much
            if (
                term.left < rare_first[0].left / 2
                and term.to_come > len(scores) * _WORTH_LOOKING
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
        """The room of every row; the same for all questions until passages come or go."""
        known_for, rooms = self._known_rooms
        if known_for != mean_length:
            rooms = room(self._lengths, mean_length)
            self._known_rooms = mean_length, rooms
        return rooms

    def _scores(self, terms: Terms, lists: list[_List], rows: NDArray[np.int64]) -> Floats:
        """BM25 of rows, term by term as it is everywhere."""
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


def in_memory(tokens: NDArray[np.unsignedinteger], ends: NDArray[np.int64]) -> Postings:
    """The postings of the tokens of one row after the other, which end at `ends`."""
    made = inverted(tokens, ends)
    return _postings(made.starts, made.rows, made.counts, np.diff(ends, prepend=0))


def load_postings(
    files: Mapping[str, OpenFile], entry: WordsEntry, lengths: NDArray[np.int64]
) -> Postings | None:
    """Opens the postings of a shard whose rows have so many tokens; None before format 3.

    Raises:
        ArtefactError: they cannot be read, or contradict each other.

    """
    if entry.postings is None or entry.starts is None or entry.counts is None:
        return None
    rows, counts = StoredArray(files[entry.postings]), StoredArray(files[entry.counts])
    starts = integers(files[entry.starts])
    path = files[entry.starts].path
    if not len(starts) or starts[0] != 0 or (np.diff(starts) < 0).any():
        raise ArtefactError(f"{path} is not in order: build it again")
    if not starts[-1] == len(rows) == len(counts):
        raise ArtefactError(
            f"{path} ends at {starts[-1]}, there are {len(rows)} rows and {len(counts)} counts of "
            "words: build it again"
        )
    _check(files[entry.postings], rows, starts, len(lengths))
    return _postings(starts, rows, counts, lengths)


def _postings(
    starts: NDArray[np.int64], rows: Values, counts: Values, lengths: NDArray[np.int64]
) -> Postings:
    tokens = np.flatnonzero(np.diff(starts))  # others have no rows
    return Postings(tokens, np.append(starts[tokens], starts[-1]), rows, counts, lengths)


def _check(file: OpenFile, rows: StoredArray, starts: NDArray[np.int64], most_rows: int) -> None:
    """Raises ArtefactError if a row cannot be, or those of a token do not ascend."""
    before = np.zeros(0, np.int64)
    for start in range(0, len(rows), _BLOCK):
        own = rows[start : min(start + _BLOCK, len(rows))].astype(np.int64)
        begun = starts[(starts >= start) & (starts < start + len(own))] - start
        steps = np.diff(own, prepend=before if len(before) else -1)
        steps[begun] = 1
        if (steps <= 0).any() or own.max() >= most_rows:
            raise ArtefactError(
                f"{file.path} has rows that are not in order, or not below {most_rows}: build it "
                "again"
            )
        before = own[-1:]


def _counts(own: _List, rows: NDArray[np.int64]) -> NDArray[np.unsignedinteger]:
    """How often each of `rows` has the term, [rows]."""
    if not len(own.rows):
        return np.zeros(len(rows), np.uint8)
    wanted = rows.astype(own.rows.dtype)  # else all of the list would be turned into its type
    places = np.minimum(np.searchsorted(own.rows, wanted), len(own.rows) - 1)
    return np.where(own.rows[places] == rows, own.counts[places], 0)


def _rare_first(terms: Terms, lists: Sequence[_List]) -> list[_Term]:
    order = np.argsort(-terms.rarities, kind="stable").tolist()
    left = np.cumsum(most(terms.rarities)[order][::-1])[::-1].tolist()
    to_come = np.cumsum([len(lists[term].rows) for term in order][::-1])[::-1].tolist()
    rarities = terms.rarities[order].tolist()
    return list(map(_Term, [lists[term] for term in order], rarities, left, to_come))


def _possible(
    rows: NDArray[np.int64], scores: Floats, k: int, left: float
) -> tuple[NDArray[np.int64], Floats]:
    """The rows, with their scores, that may be among the best `k` if `left` is to come at most."""
    good = scores + left >= _least(scores, k)
    return rows[good], scores[good]


def _least(scores: Floats, k: int) -> float:
    """What the best `k` have at least, less what rounding may be; 0 if fewer were scored."""
    scored = scores[scores > 0]
    worst = len(scored) - k
    return float(np.partition(scored, worst)[worst]) * (1 - _SLACK) if worst >= 0 else 0.0
