"""How many passages contain each word: in the index as it was built, and by writes since."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.live.entry import Logged
from winnow.content_node.shard.stored_segment import StoredSegment
from winnow.domain.word_counts import WordChanges, WordCounts
from winnow.errors import ArtefactError, NotLoadedError


class WordTally:
    """Counts exactly the words that writes added and removed."""

    def __init__(self, packed: bytes = b"", passages: int = 0, tokens: int = 0) -> None:
        """Continues the counts of an earlier tally, which `packed` holds."""
        self._by = np.frombuffer(packed, "<i4").astype(np.int32)
        self.passages, self.tokens = passages, tokens

    @property
    def packed(self) -> bytes:
        """The change of the count of each token, little-endian int32."""
        return self._by.astype("<i4").tobytes()

    def copy(self) -> "WordTally":
        return WordTally(self.packed, self.passages, self.tokens)

    def count(self, writes: Iterable[Logged]) -> None:
        """Counts writes, each once."""
        for write in writes:
            if write.put is not None:
                self._add(write.put.words, 1)
            if write.removed is not None:
                self._add(write.removed, -1)

    def add(self, others: WordChanges) -> None:
        """Adds counts of another tally."""
        self._reach(others.ids)
        self._by[others.ids] += others.by
        self.passages += others.passages
        self.tokens += others.tokens

    def changes(self, sequence: int) -> WordChanges:
        """All counts up to the write `sequence`."""
        ids = np.flatnonzero(self._by).astype(np.uint32)
        return WordChanges(
            sequence=sequence, ids=ids, by=self._by[ids], passages=self.passages, tokens=self.tokens
        )

    def _add(self, words: bytes, sign: int) -> None:
        tokens = np.frombuffer(words, "<u4")
        distinct: NDArray[np.uint32] = np.unique(tokens)
        self._reach(distinct)
        self._by[distinct] += sign
        self.passages += sign
        self.tokens += sign * len(tokens)

    def _reach(self, ascending: NDArray[np.uint32]) -> None:
        if len(ascending) and ascending[-1] >= len(self._by):
            self._by = np.pad(self._by, (0, int(ascending[-1]) + 1 - len(self._by)))


def built_counts(base: StoredSegment) -> WordCounts:
    """Reads how many passages of the whole index had each word when it was built.

    Every shard holds the same counts. Reads a file: not for the event loop.

    Raises:
        NotLoadedError: the shard is of a version without counts, or its files were written to.

    """
    words = base.manifest.words
    if words is None:
        raise NotLoadedError(
            f"shard {base.manifest.shard} is of an older version and does not know how rare words "
            "are: `winnow index build --passages INDEX --out NEW` brings it up to date"
        )
    [file] = [file for file in base.files if file.path.name == words.frequencies]
    try:
        with file.reader() as reader:
            passages = np.asarray(np.load(reader, allow_pickle=False), np.uint32)
        file.check()
    except ArtefactError as error:
        raise NotLoadedError(str(error)) from error
    return WordCounts(passages, words.index_tokens, base.manifest.index_passages)
