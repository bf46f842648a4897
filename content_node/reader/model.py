"""What a reader runs: a passage's windows to logits, whatever the networks are."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.shard.store import StoredPassage
from winnow.inference.stop import Stop

Logits = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class WindowLogits:
    """What was read in one window of a passage."""

    first: int
    """The passage token that the window begins with."""
    start: Logits
    """[tokens of the passage in this window]."""
    end: Logits
    relevance: float


class ReadingModel(Protocol):
    """Networks that read. Safe to use from several threads."""

    def windows(
        self, question: Sequence[int], stored: StoredPassage, stop: Stop | None = None
    ) -> Iterator[WindowLogits]:
        """Reads each window of a passage; `question` are token ids without special tokens.

        Raises:
            StoppedError: `stop` was set before all of it was read.

        """
