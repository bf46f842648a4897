"""The words of every passage, row after row: how well given passages match a question.

This scores passages that were found by their vectors. `postings` finds passages by words.
"""

from collections.abc import Callable, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.bm25 import Terms, added, room, worth


class Integers(Protocol):
    """Unsigned integers in memory or on disk."""

    def __len__(self) -> int: ...

    def __getitem__(self, place: slice, /) -> NDArray[np.unsignedinteger]: ...


class WordIndex:
    """The tokens of every passage. Safe to use from several threads."""

    def __init__(
        self,
        tokens: Integers,
        ends: NDArray[np.int64],
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Takes the tokens of titles and texts, row after row, and where each row's tokens end.

        `check` is called after each read; it raises if the file was written to.
        """
        self._tokens, self._ends, self._check = tokens, ends, check

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Number of tokens of each row, [rows]; 0 for an empty row."""
        return np.diff(self._ends, prepend=0)

    def tokens(self, row: int) -> bytes:
        """Returns the tokens of a row's title and text."""
        begin = int(self._ends[row - 1]) if row else 0
        return self._tokens[begin : int(self._ends[row])].tobytes()

    def match(self, terms: Terms, rows: Sequence[int]) -> NDArray[np.float64]:
        """Returns the BM25 score of each of `rows`, [rows].

        Raises:
            ArtefactError: the file of the tokens was written to.

        """
        if not rows or not len(terms.ids):
            return np.zeros(len(rows))
        places = np.array(rows)
        ends = self._ends[places]
        begins = np.where(places, self._ends[places - 1], 0)
        own = [self._tokens[a:b] for a, b in zip(begins.tolist(), ends.tolist(), strict=True)]
        self._check()
        lengths = ends - begins
        counts = _counted(own, lengths, terms)
        rooms = room(lengths, terms.mean_length)
        rarities = terms.rarities.tolist()
        worths = (worth(counts[:, n], rooms, rarity) for n, rarity in enumerate(rarities))
        return added(worths, len(rows))


def _counted(
    own: Sequence[NDArray[np.unsignedinteger]], lengths: NDArray[np.int64], terms: Terms
) -> NDArray[np.int64]:
    """Returns how often each row has each term, [rows, terms]."""
    size = len(terms.ids)
    others = int(terms.ids[-1]) + 1
    place = np.full(others + 1, size)
    place[terms.ids] = np.arange(size)
    tokens = np.minimum(np.concatenate(own).astype(np.int64), others)
    # one bin for each term of each row, and one for all other tokens of the row
    bins = np.repeat(np.arange(len(own)), lengths) * (size + 1)
    counts = np.bincount(bins + place[tokens], minlength=len(own) * (size + 1))
    return counts.reshape(len(own), -1)[:, :size]
