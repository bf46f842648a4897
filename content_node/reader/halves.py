"""Question and passage apart in the lower layers, together in the upper ones.

What the lower layers make of a passage may have been computed when it was indexed; otherwise it is
computed now, and rounded as it would have been stored: the answer is the same.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.reader.lower import Lower
from winnow.content_node.reader.model import WindowLogits
from winnow.content_node.shard.store import StoredPassage
from winnow.content_node.states.states import States
from winnow.inference.session import Inputs, Session
from winnow.inference.stop import Stop

_KEPT = 64
"""Questions whose half is kept: a question is read in several calls, and threads take turns."""


class HalvesModel:
    """Two networks: the lower layers, run for each half, and the upper ones."""

    def __init__(self, lower: Lower, upper: Session) -> None:
        self._lower, self._upper = lower, upper
        self._asked, self._asking = lru_cache(_KEPT)(lower.question), Lock()

    def windows(
        self, question: Sequence[int], stored: StoredPassage, stop: Stop | None = None
    ) -> Iterator[WindowLogits]:
        """Reads each window of a passage; see `ReadingModel`."""
        with self._asking:  # threads that begin on a question together would each compute it
            asked = self._asked(tuple(question))
        halves = self._lower.halves(stored)
        ends = list(accumulate(len(half.ids) for half in halves))
        states = stored.states
        if states is not None and len(states.scales) != ends[-1]:
            states = None  # of a passage that was prepared otherwise
        for half, end in zip(halves, ends, strict=True):
            if states is None:
                told = self._lower.passage(half, stop)
            else:
                told = states.part(end - len(half.ids), end)
            yield self._window(asked, told, half.place, half.length, half.first, stop)

    def _window(
        self,
        asked: NDArray[np.float32],
        told: States,
        place: int,
        length: int,
        first: int,
        stop: Stop | None,
    ) -> WindowLogits:
        inputs: Inputs = {
            "question_states": asked,
            "passage_levels": told.levels[None],
            "passage_scales": told.scales[None, :, None],
        }
        start, end, relevance = self._upper.run(inputs, stop)
        inside = slice(place, place + length)
        return WindowLogits(first, start[0][inside], end[0][inside], float(relevance[0]))
