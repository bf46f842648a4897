"""The split reader (DeFormer, Cao et al. 2020): lower layers see question and passage apart.

The lower layers' states of a passage may be precomputed when it is indexed. Otherwise they are
computed now, and rounded as they would have been stored, so the answer is the same.
"""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import accumulate
from threading import Lock

from winnow.content_node.reader.lower_layers import LowerLayers
from winnow.content_node.reader.model import WindowLogits
from winnow.content_node.shard.store import StoredPassage
from winnow.inference.session import Inputs, Session
from winnow.inference.stop import Stop

_CACHED = 64
"""Questions whose states are cached: a question is read in several calls, and threads take
turns.
"""


class SplitReader:
    """The lower layers, run for question and passage apart, and the upper layers; a
    `ReadingModel`.
    """

    def __init__(self, lower: LowerLayers, upper: Session) -> None:
        self._lower, self._upper = lower, upper
        self._question_states, self._lock = lru_cache(_CACHED)(lower.question), Lock()

    def windows(
        self, question: Sequence[int], stored: StoredPassage, stop: Stop | None = None
    ) -> Iterator[WindowLogits]:
        with self._lock:  # otherwise threads that begin on a question together all compute it
            question_states = self._question_states(tuple(question))
        windows = self._lower.windows(stored)
        ends = list(accumulate(len(window.ids) for window in windows))
        stored_states = stored.states
        if stored_states is not None and len(stored_states.scales) != ends[-1]:
            stored_states = None  # of a passage that was prepared in another way
        for window, end in zip(windows, ends, strict=True):
            if stored_states is None:
                states = self._lower.passage(window, stop)
            else:
                states = stored_states.part(end - len(window.ids), end)
            inputs: Inputs = {
                "question_states": question_states,
                "passage_levels": states.levels[None],
                "passage_scales": states.scales[None, :, None],
            }
            start, of_end, relevance = self._upper.run(inputs, stop)
            inside = slice(window.place, window.place + window.length)
            yield WindowLogits(
                window.first, start[0][inside], of_end[0][inside], float(relevance[0])
            )
