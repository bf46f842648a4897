"""How many passages contain each word: of an index as it was built, and what writes changed."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class WordCounts:
    """Tokens of an index, counted."""

    passages: NDArray[np.uint32]
    """How many passages contain each token, [greatest token + 1]."""
    tokens: int
    """Of all passages together."""
    total: int = 0
    """Passages."""

    @property
    def vocabulary(self) -> int:
        """One more than the greatest token."""
        return len(self.passages)


@dataclass(frozen=True, slots=True, kw_only=True)
class WordChanges:
    """What the writes to a shard changed, from when it was built up to one of them."""

    sequence: int
    """The last write that is counted."""
    ids: NDArray[np.uint32]
    """Tokens whose counts changed, ascending."""
    by: NDArray[np.int32]
    """By how many passages each, [len(ids)]."""
    passages: int
    """More passages than there were; negative for fewer."""
    tokens: int
