"""Counts of passages by word: of an index as it was built, and changes by writes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class WordCounts:
    """Tokens of an index, counted."""

    passages: NDArray[np.uint32]
    """How many passages contain each token, [greatest token + 1]."""
    tokens: int
    """Tokens of all passages together."""
    total: int = 0
    """Number of passages in the index."""

    @property
    def vocabulary(self) -> int:
        """One more than the greatest token."""
        return len(self.passages)


@dataclass(frozen=True, slots=True, kw_only=True)
class WordChanges:
    """Changes of the word counts of a shard by its writes since the build."""

    sequence: int
    """The last write that is included."""
    ids: NDArray[np.uint32]
    """Tokens whose counts changed, ascending."""
    by: NDArray[np.int32]
    """Change of the number of passages that contain each token of `ids`, [len(ids)]."""
    passages: int
    """The change of the number of passages; negative for fewer."""
    tokens: int
