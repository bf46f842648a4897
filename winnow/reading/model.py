"""The interface of a reading model, which computes logits for the windows of a passage."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from winnow.bundle.manifest import ReaderEntry
from winnow.inference.stop_signal import StopSignal
from winnow.reading.stored_passage import StoredPassage

Logits = NDArray[np.float32]
OUTPUTS = ["start_logits", "end_logits", "relevance_logit"]
MIN_PASSAGE_ROOM = 16
"""Passage tokens per window beside the longest question."""
_SPECIAL, _QUESTION_SPECIAL = 4, 2
"""Special tokens of a sequence: [CLS] and three [SEP]; two of them enclose the question."""


@dataclass(frozen=True, slots=True)
class WindowLogits:
    """Logits of one window of a passage."""

    first: int
    """Index in the passage of the window's first passage token."""
    start: Logits
    """[passage tokens of this window]."""
    end: Logits
    """[passage tokens of this window]."""
    relevance: float
    remembered: bool = field(default=False, kw_only=True)
    """Whether the states of the window were remembered from an earlier read."""


class ReadingModel(Protocol):
    """Computes the logits of a question and a passage. Safe to use from several threads."""

    def window_ranges(
        self, question: Sequence[int], title: Sequence[int], tokens: int
    ) -> list[tuple[int, int]]:
        """Returns the ranges of the windows of a passage with this title and `tokens` tokens.

        A passage that consists of one of these ranges has one window, which is the same.
        """

    def run_windows(
        self, question: Sequence[int], stored: StoredPassage, stop: StopSignal | None = None
    ) -> Iterator[WindowLogits]:
        """Runs each window of a passage; `question` has token ids without special tokens.

        Raises:
            StoppedError: `stop` was set before all windows were read.

        """


def split_windows(tokens: int, room: int, overlap: int) -> list[tuple[int, int]]:
    """Returns ranges of at most `room` tokens that together cover `tokens` tokens.

    Adjacent windows share at least `overlap` tokens, so that no answer is split. The last window is
    moved back to be full. An empty passage has one empty window.
    """
    if tokens <= room:
        return [(0, tokens)]
    if not 0 <= overlap < room:
        raise ValueError(f"overlap is {overlap}, it must be at least 0 and below room, {room}")
    starts = [*range(0, tokens - room, room - overlap), tokens - room]
    return [(start, start + room) for start in starts]


def max_question_tokens(reader: ReaderEntry) -> int:
    """Returns the maximum number of question tokens in an input, without special tokens."""
    if reader.apart is not None:
        return reader.apart.passage_position - _QUESTION_SPECIAL
    return reader.max_tokens - _SPECIAL - MIN_PASSAGE_ROOM
