"""The words of every passage, row after row: how well given passages match a question.

Derived from the passages; written by the builder. `content_node.shard.postings` finds passages by
words, this scores those that were found otherwise.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.bm25 import BuiltRarities, added, room, worth
from winnow.content_node.shard.manifest import WordsEntry
from winnow.content_node.shard.segment import Terms
from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile
from winnow.files.stored_array import StoredArray, integers


class TokenValues(Protocol):
    """Tokens in memory or on disk: slices of an array."""

    def __getitem__(self, place: slice, /) -> NDArray[np.unsignedinteger]: ...


class WordIndex:
    """The tokens of every passage. Safe to use from several threads."""

    def __init__(
        self,
        tokens: TokenValues,
        ends: NDArray[np.int64],
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Tokens of title and text, of one row after the other, and where those of each row end.

        `check` raises if tokens that were just read are not to be trusted.
        """
        self._tokens, self._ends, self._check = tokens, ends, check

    @property
    def lengths(self) -> NDArray[np.int64]:
        """Tokens of each row, [rows]; 0 for one that holds nothing."""
        return np.diff(self._ends, prepend=0)

    def tokens(self, row: int) -> bytes:
        """The tokens of a row's title and text."""
        begin = int(self._ends[row - 1]) if row else 0
        return self._tokens[begin : int(self._ends[row])].tobytes()

    def match(self, terms: Terms, rows: Sequence[int]) -> NDArray[np.float64]:
        """BM25 of each of `rows`: 0 or more, [rows].

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
    """How often each row has each term, [rows, terms]."""
    size = len(terms.ids)
    others = int(terms.ids[-1]) + 1
    place = np.full(others + 1, size)
    place[terms.ids] = np.arange(size)
    tokens = np.minimum(np.concatenate(own).astype(np.int64), others)
    # one bin for each term of each row, and one for all of its other tokens
    bins = np.repeat(np.arange(len(own)), lengths) * (size + 1)
    counts = np.bincount(bins + place[tokens], minlength=len(own) * (size + 1))
    return counts.reshape(len(own), -1)[:, :size]


def load_words(
    files: Mapping[str, OpenFile], entry: WordsEntry, rows: int, passages: int, grown: bool
) -> tuple[WordIndex, BuiltRarities]:
    """Opens the words of a shard with `rows` rows, of an index that was built with `passages`; it
    has `grown` if passages were put since.

    Raises:
        ArtefactError: they cannot be read, or contradict each other.

    """
    tokens = StoredArray(files[entry.tokens])
    ends, frequencies = integers(files[entry.ends]), integers(files[entry.frequencies])
    if len(ends) != rows or (rows and ends[-1] != len(tokens)):
        raise ArtefactError(
            f"{files[entry.ends].path} is of {len(ends)} passages and "
            f"{files[entry.tokens].path.name} of {len(tokens)} tokens, the manifest says {rows} "
            "passages: build it again"
        )
    if (np.diff(ends, prepend=0) < 0).any():
        raise ArtefactError(f"{files[entry.ends].path} is not in order: build it again")
    if (frequencies < 0).any():
        raise ArtefactError(f"{files[entry.frequencies].path} counts less than none")
    highest = int(frequencies.max(initial=0))
    if highest > passages or (entry.index_tokens < len(tokens) and not grown):
        raise ArtefactError(
            f"a token is in {highest} passages and the shard has {len(tokens)} tokens, its "
            f"manifest says that the index has {passages} passages and {entry.index_tokens} "
            "tokens: build it again"
        )
    mean = entry.index_tokens / max(passages, 1)
    built = BuiltRarities(frequencies, passages, mean)
    return WordIndex(tokens, ends, tokens.check), built
