"""What writes change of how many passages contain each word. Pure."""

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.live.entry import Logged, ids_of
from winnow.domain.word_counts import WordChanges


class WordTally:
    """Words that writes brought and took away, counted exactly."""

    def __init__(self, packed: bytes = b"", passages: int = 0, tokens: int = 0) -> None:
        """What an earlier tally counted, as it was packed."""
        self._by = np.frombuffer(packed, "<i4").astype(np.int32)
        self.passages, self.tokens = passages, tokens

    @property
    def packed(self) -> bytes:
        """By how much each token changed, little-endian int32."""
        return self._by.astype("<i4").tobytes()

    def copy(self) -> "WordTally":
        """The same, to be counted on by itself."""
        return WordTally(self.packed, self.passages, self.tokens)

    def count(self, write: Logged) -> None:
        """Counts a write, once."""
        if write.put is not None:
            self._add(write.put.words, 1)
        if write.removed is not None:
            self._add(write.removed, -1)

    def count_all(self, writes: Iterable[Logged]) -> None:
        """Counts writes, once each."""
        for write in writes:
            self.count(write)

    def add(self, others: WordChanges) -> None:
        """Counts what was counted elsewhere."""
        self._reach(others.ids)
        self._by[others.ids] += others.by
        self.passages += others.passages
        self.tokens += others.tokens

    def changes(self, sequence: int) -> WordChanges:
        """All that was counted, up to a write."""
        ids = np.flatnonzero(self._by).astype(np.uint32)
        return WordChanges(
            sequence=sequence, ids=ids, by=self._by[ids], passages=self.passages, tokens=self.tokens
        )

    def _add(self, words: bytes, sign: int) -> None:
        tokens = ids_of(words)
        distinct: NDArray[np.uint32] = np.unique(tokens)
        self._reach(distinct)
        self._by[distinct] += sign
        self.passages += sign
        self.tokens += sign * len(tokens)

    def _reach(self, ascending: NDArray[np.uint32]) -> None:
        """Makes room for these tokens."""
        if len(ascending) and ascending[-1] >= len(self._by):
            self._by = np.pad(self._by, (0, int(ascending[-1]) + 1 - len(self._by)))
