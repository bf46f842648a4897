"""How many passages contain each word: counts of the built index, and changes by later writes."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.live.log_entry import LoggedWrite
from winnow.content_node.shard.manifest import CONVERT_INDEX
from winnow.content_node.shard.stored_segment import StoredSegment
from winnow.domain.word_counts import WordChanges, WordCounts
from winnow.errors import ArtefactError, NotLoadedError
from winnow.files.stored_array import read_integers


class WordTally:
    """Sums up how writes change the counts of words, passages and tokens."""

    def __init__(self, packed: bytes = b"", passages: int = 0, tokens: int = 0) -> None:
        """Starts from the `packed` counts of an earlier tally, or from zero."""
        self._changes = np.frombuffer(packed, "<i4").astype(np.int32)
        """By how many passages the count of each token changed, [vocabulary]."""
        self.passages, self.tokens = passages, tokens

    @property
    def packed(self) -> bytes:
        """The change of the count of each token as little-endian int32, by token id."""
        return self._changes.astype("<i4").tobytes()

    def copy(self) -> "WordTally":
        return WordTally(self.packed, self.passages, self.tokens)

    def count_writes(self, writes: Iterable[LoggedWrite]) -> None:
        """Adds the changes that writes make."""
        for write in writes:
            if write.put is not None:
                self.count_passage(write.put.words, 1)
            if write.removed_words is not None:
                self.count_passage(write.removed_words, -1)

    def add(self, changes: WordChanges) -> None:
        """Adds the changes of another tally."""
        self._grow(changes.ids)
        self._changes[changes.ids] += changes.by
        self.passages += changes.passages
        self.tokens += changes.tokens

    def changes(self, sequence: int) -> WordChanges:
        """Returns the sum of the changes. `sequence` is the number of the last counted write."""
        ids = np.flatnonzero(self._changes).astype(np.uint32)
        return WordChanges(
            sequence=sequence,
            ids=ids,
            by=self._changes[ids],
            passages=self.passages,
            tokens=self.tokens,
        )

    def count_passage(self, words: bytes, sign: int) -> None:
        """Counts the packed words of a passage, which was added (`sign` 1) or removed (-1)."""
        tokens = np.frombuffer(words, "<u4")
        distinct: NDArray[np.uint32] = np.unique(tokens)
        self._grow(distinct)
        self._changes[distinct] += sign
        self.passages += sign
        self.tokens += sign * len(tokens)

    def _grow(self, ascending_ids: NDArray[np.uint32]) -> None:
        """Extends the counts to the last of the token ids."""
        if len(ascending_ids) and ascending_ids[-1] >= len(self._changes):
            missing = int(ascending_ids[-1]) + 1 - len(self._changes)
            self._changes = np.pad(self._changes, (0, missing))


def word_counts_at_build(base: StoredSegment) -> WordCounts:
    """Reads how many passages of the whole index had each word when it was built.

    Every shard holds the same counts. Reads a file, so do not call it on the event loop.

    Raises:
        NotLoadedError: the shard is of a version without counts, or its files were overwritten.

    """
    words = base.manifest.words
    if words is None:
        raise NotLoadedError(
            f"shard {base.manifest.shard} is of an older version without word counts: "
            f"{CONVERT_INDEX}"
        )
    [file] = [file for file in base.files if file.path.name == words.frequencies]
    try:
        passages = read_integers(file).astype(np.uint32)
        file.check()
    except ArtefactError as error:
        raise NotLoadedError(str(error)) from error
    return WordCounts(passages, words.index_tokens, base.manifest.index_passages)
