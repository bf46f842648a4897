"""Several heads on one text: one piece of work, for one thread.

Knows open heads and states; does not know where heads come from or what becomes of the results.
"""

import threading
from collections.abc import Callable, Sequence

import numpy as np
import structlog

from winnow.deadline import Deadline
from winnow.domain.prediction import Prediction
from winnow.errors import UnavailableError, WinnowError
from winnow.heads.head import FloatStates, Head
from winnow.heads.heads import States

_log = structlog.get_logger("heads")
Result = Prediction | WinnowError


class Piece:
    """Runs heads one after the other. What is done when time runs out is kept."""

    def __init__(
        self, heads: Sequence[Head], deadline: Deadline, ended: Callable[[], object]
    ) -> None:
        """`ended` is called once, by whichever thread, when no head is in use any more."""
        self._heads, self._deadline, self._ended = heads, deadline, ended
        self._claim = threading.Lock()
        self._stopped = False
        self._results: list[Result | None] = [None] * len(heads)

    def work(self, states: States) -> None:
        """Runs them on the states of a text, in the thread that calls; only the first time."""
        if not self._claim.acquire(blocking=False):
            return
        try:
            wide = states.astype(np.float32)
            for place, head in enumerate(self._heads):
                if self._stopped or self._deadline.expired():
                    break
                self._results[place] = _predicted(head, wide)
        finally:
            self._ended()

    def stop(self) -> list[Result | None]:
        """What each head said, None if it was not run; ends after the head that is being run, or
        before the first one.
        """
        self._stopped = True
        if self._claim.acquire(blocking=False):
            self._ended()
        return list(self._results)


def _predicted(head: Head, states: FloatStates) -> Result:
    try:
        return head.predict(states)
    except WinnowError as error:
        return error
    except Exception as error:  # noqa: BLE001 (a failure of one head is that head's only)
        _log.error("a head failed", head=head.manifest.id, exc_info=error)
        return UnavailableError(f"head {head.manifest.id} failed; the server's log says why")
