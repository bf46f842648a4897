"""Document frequencies of tokens: the counts of a build, and their changes by writes."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True)
class WordCounts:
    """The token statistics of an index."""

    passages: NDArray[np.uint32]
    """Number of passages that contain each token, indexed by token id."""
    tokens: int
    """Number of tokens of all passages."""
    total: int = 0
    """Number of passages in the index."""

    @property
    def vocabulary(self) -> int:
        """One more than the greatest token id."""
        return len(self.passages)


@dataclass(frozen=True, slots=True, kw_only=True)
class WordChanges:
    """Changes of the token statistics of a shard by its writes since the build."""

    sequence: int
    """Sequence number of the last write that is included."""
    ids: NDArray[np.uint32]
    """Ids of the tokens whose counts changed, ascending."""
    by: NDArray[np.int32]
    """Change of the number of passages that contain each token of `ids`, [len(ids)]."""
    passages: int
    """Change of the number of passages; may be negative."""
    tokens: int
    """Change of the number of tokens of all passages; may be negative."""
