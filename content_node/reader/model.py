"""The reader's model interface: turns the windows of a passage into logits.

It serves any kind of network, and does no I/O.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from winnow.bundle.manifest import ReaderEntry
from winnow.content_node.shard.store import StoredPassage
from winnow.inference.stop import Stop

Logits = NDArray[np.float32]
OUTPUTS = ["start_logits", "end_logits", "relevance_logit"]
LEAST_ROOM = 16
"""Tokens of a passage that fit beside the longest question."""
SPECIAL, _QUESTION_SPECIAL = 4, 2
"""Special tokens of a sequence: [CLS] and three [SEP]; two of them enclose the question."""


@dataclass(frozen=True, slots=True)
class WindowLogits:
    """Logits of one window of a passage."""

    first: int
    """The passage token that the window begins with."""
    start: Logits
    """[tokens of the passage in this window]."""
    end: Logits
    """[tokens of the passage in this window]."""
    relevance: float


class ReadingModel(Protocol):
    """Networks that read. Safe to use from several threads."""

    def windows(
        self, question: Sequence[int], stored: StoredPassage, stop: Stop | None = None
    ) -> Iterator[WindowLogits]:
        """Reads each window of a passage; `question` are token ids without special tokens.

        Raises:
            StoppedError: `stop` was set before all windows were read.

        """


def windows(tokens: int, room: int, overlap: int) -> list[tuple[int, int]]:
    """Returns ranges of tokens, each at most `room` long, that together cover all of them.

    Neighbours share at least `overlap` tokens, so that an answer is not cut in two. The last window
    is moved back to be full. An empty passage has one empty window.
    """
    if tokens <= room:
        return [(0, tokens)]
    if not 0 <= overlap < room:
        raise ValueError(
            f"overlap {overlap} must be at least 0 and below the room of {room} tokens"
        )
    starts = [*range(0, tokens - room, room - overlap), tokens - room]
    return [(start, start + room) for start in starts]


def longest_question(reader: ReaderEntry) -> int:
    """Returns how many tokens of a question, without special ones, leave room for a passage."""
    if reader.apart is not None:
        return reader.apart.passage_position - _QUESTION_SPECIAL
    return reader.max_tokens - SPECIAL - LEAST_ROOM
