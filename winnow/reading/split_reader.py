"""The split reader (DeFormer, Cao et al. 2020): lower layers read question and passage separately.

The lower layers' states of a passage may be precomputed when it is indexed. Otherwise they are
computed here, and quantised like stored states, so the answer is the same.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from threading import Lock

from winnow.inference.session import Inputs, Session
from winnow.inference.stop_signal import StopSignal
from winnow.reading.lower_layers import LowerLayers, PassageWindow
from winnow.reading.model import WindowLogits
from winnow.reading.passage_states import PassageStates
from winnow.reading.stored_passage import StoredPassage

_CACHED_QUESTIONS = 64
"""Number of questions whose states are cached: threads alternate between questions, and a question
needs its states in several calls.
"""


WindowStates = Callable[[PassageWindow, StopSignal | None], tuple[PassageStates, bool]]
"""Returns the states of a window, and whether they were remembered."""


class SplitReader:
    """A `ReadingModel` whose lower layers run separately for question and passage."""

    def __init__(
        self, lower: LowerLayers, upper: Session, window_states: WindowStates | None = None
    ) -> None:
        """`window_states` returns the states of a window; None to compute them each time."""
        self.lower, self._upper = lower, upper
        self._window_states = window_states or self._compute_states
        self._question_states = lru_cache(_CACHED_QUESTIONS)(lower.question_states)
        self._lock = Lock()

    def with_window_states(self, window_states: WindowStates) -> "SplitReader":
        """Returns a split reader with the same models, and with another source of states."""
        return SplitReader(self.lower, self._upper, window_states)

    def window_ranges(
        self,
        question: Sequence[int],
        title: Sequence[int],
        tokens: int,
    ) -> list[tuple[int, int]]:
        return self.lower.window_ranges(title, tokens)

    def run_windows(
        self, question: Sequence[int], stored: StoredPassage, stop: StopSignal | None = None
    ) -> Iterator[WindowLogits]:
        with self._lock:  # otherwise threads that begin at the same time all compute the states
            question_states = self._question_states(tuple(question))
        windows = self.lower.windows(stored)
        ends = list(accumulate(len(window.ids) for window in windows))
        stored_states = stored.states
        if stored_states is not None and len(stored_states.scales) != ends[-1]:
            stored_states = None  # computed for other windows
        for window, end in zip(windows, ends, strict=True):
            remembered = False
            if stored_states is None:
                states, remembered = self._window_states(window, stop)
            else:
                states = stored_states.part(end - len(window.ids), end)
            inputs: Inputs = {
                "question_states": question_states,
                "passage_levels": states.levels[None],
                "passage_scales": states.scales[None, :, None],
            }
            start_logits, end_logits, relevance = self._upper.run(inputs, stop)
            passage = slice(window.offset, window.offset + window.length)
            yield WindowLogits(
                window.first,
                start_logits[0][passage],
                end_logits[0][passage],
                float(relevance[0]),
                remembered=remembered,
            )

    def _compute_states(
        self, window: PassageWindow, stop: StopSignal | None
    ) -> tuple[PassageStates, bool]:
        return self.lower.window_states(window, stop), False
