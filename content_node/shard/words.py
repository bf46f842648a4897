"""How well passages match the words of a question: BM25 (Robertson and Zaragoza 2009) over tokens.

Words are the encoder's tokens. How rare each of them is was counted over the whole index, so that a
match is worth the same on every shard. Derived from the passages; written by the builder.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from content_node.shard.manifest import WordsEntry
from content_node.shard.stored_array import StoredArray
from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile
from winnow.text.rarity import rarities

K1, B = 0.9, 0.4
"""How fast a repeated word stops counting, and how much a long passage is held against it: the
values of Anserini for passages (Yang, Fang and Lin 2017).
"""


class TokenValues(Protocol):
    """Tokens in memory or on disk: slices of an array."""

    def __getitem__(self, place: slice, /) -> NDArray[np.unsignedinteger]: ...


class WordIndex:
    """The tokens of every passage, and how rare each is. Safe to use from several threads."""

    def __init__(
        self,
        tokens: TokenValues,
        ends: NDArray[np.int64],
        frequencies: NDArray[np.integer],
        passages: int,
        mean_length: float,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Tokens of title and text, of one row after the other, and where those of each row end.

        `frequencies` are how many of the index's `passages` contain each token, [vocabulary], and
        `mean_length` is their mean number of tokens.
        `check` raises if tokens that were just read are not to be trusted.
        """
        self._tokens, self._ends, self._mean = tokens, ends, max(mean_length, 1.0)
        self._check = check
        self._rarity = rarities(frequencies, passages)

    def match(self, question: Sequence[int], rows: Sequence[int]) -> NDArray[np.float64]:
        """BM25 of each of `rows` for the question's distinct tokens: 0 or more, [rows].

        Raises:
            ArtefactError: the file of the tokens was written to.

        """
        vocabulary = len(self._rarity)
        terms = np.unique(np.array([token for token in question if token < vocabulary], np.int64))
        if not rows or not len(terms):
            return np.zeros(len(rows))
        own = [self._row(row) for row in rows]
        self._check()
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


def load_words(
    files: Mapping[str, OpenFile], entry: WordsEntry, rows: int, passages: int
) -> WordIndex:
    """Opens the words of a shard with `rows` passages, of an index with `passages`.

    Raises:
        ArtefactError: they cannot be read, or contradict each other.

    """
    tokens = StoredArray(files[entry.tokens])
    ends, frequencies = _integers(files[entry.ends]), _integers(files[entry.frequencies])
    if len(ends) != rows or (rows and ends[-1] != len(tokens)):
        raise ArtefactError(
            f"{files[entry.ends].path} is of {len(ends)} passages and "
            f"{files[entry.tokens].path.name} of {len(tokens)} tokens, the manifest says {rows} "
            "passages: build it again"
        )
    if (np.diff(ends, prepend=0) < 0).any():
        raise ArtefactError(f"{files[entry.ends].path} is not in order: build it again")
    most = int(frequencies.max(initial=0))
    if most > passages or entry.index_tokens < len(tokens):
        raise ArtefactError(
            f"a token is in {most} passages and the shard has {len(tokens)} tokens, its manifest "
            f"says that the index has {passages} passages and {entry.index_tokens} tokens: build "
            "it again"
        )
    mean = entry.index_tokens / max(passages, 1)
    return WordIndex(tokens, ends, frequencies, passages, mean, tokens.check)


def _integers(file: OpenFile) -> NDArray[np.int64]:
    """All of an array of integers, in memory."""
    try:
        with file.reader() as reader:
            values = np.load(reader, allow_pickle=False)
    except (OSError, ValueError, EOFError, MemoryError) as error:
        raise ArtefactError(f"{file.path} cannot be loaded: {error}") from error
    if not isinstance(values, np.ndarray) or values.ndim != 1 or values.dtype.kind not in "iu":
        raise ArtefactError(f"{file.path} does not hold a row of integers")
    return values.astype(np.int64, copy=False)
