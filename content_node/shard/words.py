"""How well passages match the words of a question: BM25 (Robertson and Zaragoza 2009) over tokens.

Words are the encoder's tokens. How rare each of them is was counted over the whole index, so that a
match is worth the same on every shard. Derived from the passages; written by the builder.
"""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from content_node.shard.manifest import WordsEntry
from winnow.errors import ArtefactError

K1, B = 0.9, 0.4
"""How fast a repeated word stops counting, and how much a long passage is held against it: the
values of Anserini for passages (Yang, Fang and Lin 2017).
"""


class WordIndex:
    """The tokens of every passage, and how rare each is. Safe to use from several threads."""

    def __init__(
        self,
        tokens: NDArray[np.unsignedinteger],
        ends: NDArray[np.int64],
        frequencies: NDArray[np.uint32],
        passages: int,
        mean_length: float,
    ) -> None:
        """Tokens of title and text, of one row after the other, and where those of each row end.

        `frequencies` are how many of the index's `passages` contain each token, [vocabulary], and
        `mean_length` is their mean number of tokens.
        """
        self._tokens, self._ends, self._mean = tokens, ends, max(mean_length, 1.0)
        absent = passages - frequencies.astype(np.float64)
        self._rarity = np.log1p((absent + 0.5) / (frequencies + 0.5))

    def match(self, question: Sequence[int], rows: Sequence[int]) -> NDArray[np.float64]:
        """BM25 of each of `rows` for the question's distinct tokens: 0 or more, [rows]."""
        vocabulary = len(self._rarity)
        terms = np.unique(np.array([token for token in question if token < vocabulary], np.int64))
        if not rows or not len(terms):
            return np.zeros(len(rows))
        own = [self._row(row) for row in rows]
        lengths = np.array([len(tokens) for tokens in own])
        place = np.full(vocabulary, len(terms))
        place[terms] = np.arange(len(terms))
        # one bin for each term of each row, and one for all of its other tokens
        bins = np.repeat(np.arange(len(rows)), lengths) * (len(terms) + 1)
        counts = np.bincount(
            bins + place[np.concatenate(own)], minlength=len(rows) * (len(terms) + 1)
        )
        found = counts.reshape(len(rows), -1)[:, : len(terms)]
        room = K1 * (1 - B + B * lengths / self._mean)
        worth = found * (K1 + 1) / (found + room[:, None]) * self._rarity[terms]
        # not by BLAS, whose sums depend on how many rows there are
        matched: NDArray[np.float64] = worth.sum(axis=1)
        return matched

    def _row(self, row: int) -> NDArray[np.unsignedinteger]:
        return self._tokens[self._ends[row - 1] if row else 0 : self._ends[row]]


def load_words(directory: Path, entry: WordsEntry, rows: int, passages: int) -> WordIndex:
    """Maps the files of a shard with `rows` passages, of an index with `passages`.

    Raises:
        ArtefactError: they cannot be read, or contradict each other.

    """
    try:
        tokens = np.load(directory / entry.tokens, mmap_mode="r")
        ends = np.load(directory / entry.ends)
        frequencies = np.load(directory / entry.frequencies)
    except (OSError, ValueError) as error:
        raise ArtefactError(f"the words of {directory} cannot be loaded: {error}") from error
    if len(ends) != rows or (rows and ends[-1] != len(tokens)):
        raise ArtefactError(
            f"the words of {directory} are of {len(ends)} passages and {len(tokens)} tokens, its "
            f"manifest says {rows} passages: build it again"
        )
    return WordIndex(tokens, ends, frequencies, passages, entry.index_tokens / max(passages, 1))
