"""Several heads run on one text, in one thread.

Knows open heads and states; does not know where heads come from or what becomes of the results.
"""

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager

import numpy as np
import structlog

from winnow.deadline import Deadline
from winnow.domain.prediction import Applied, Prediction
from winnow.errors import UnavailableError, WinnowError
from winnow.heads.head import FloatStates, Head
from winnow.heads.heads import States
from winnow.text.encoder import TextEncoding

_log = structlog.get_logger("heads")
HeadResult = Prediction | WinnowError


class HeadRun:
    """Runs heads one after the other. Results that are done when time runs out are kept."""

    def __init__(
        self, heads: Sequence[Head], deadline: Deadline, ended: Callable[[], object]
    ) -> None:
        """`ended` is called once, in any thread, when no head is in use any more."""
        self._heads, self._deadline, self._ended = heads, deadline, ended
        self._claim = threading.Lock()
        self._stopped = False
        self._results: list[HeadResult | None] = [None] * len(heads)

    def run(self, states: States) -> None:
        """Runs the heads on the states of a text, in the calling thread; only the first time."""
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

    def stop(self) -> list[HeadResult | None]:
        """Ends the run after the head that is running, or before the first one.

        Returns:
            Each head's result; None for a head that was not run.

        """
        self._stopped = True
        if self._claim.acquire(blocking=False):
            self._ended()
        return list(self._results)


def _predicted(head: Head, states: FloatStates) -> HeadResult:
    try:
        return head.predict(states)
    except WinnowError as error:
        return error
    except Exception as error:  # noqa: BLE001 (a failure of one head is that head's only)
        _log.error("a head failed", head=head.manifest.id, exc_info=error)
        return UnavailableError(f"head {head.manifest.id} failed; the server's log says why")


class EncoderThreadRun:
    """Heads that run in the thread that encodes a text, before the encoding is handed over.

    A head takes a tenth of a millisecond; handing states to another thread, and results back, takes
    longer. `Heads.apply` runs the heads that this run leaves out.
    """

    def __init__(
        self, run: HeadRun | None = None, applied: Callable[[], list[Applied]] = list
    ) -> None:
        """`run`: the heads; None for none. `applied` ends the run and returns its results."""
        self._run, self._applied = run, applied
        self.seconds = 0.0
        """Time that the heads took."""

    def run(self, encoding: TextEncoding) -> None:
        """Runs the heads in the calling thread; does nothing once `applied` was called."""
        if self._run is not None and encoding.states is not None:
            began = time.perf_counter()
            self._run.run(encoding.states)
            self.seconds = time.perf_counter() - began

    def applied(self) -> list[Applied]:
        """Returns the heads that were run. Called once, by the caller that awaited the encoding."""
        return self._applied()


BeginEncoderThreadRun = Callable[
    [Sequence[str], Deadline], AbstractContextManager[EncoderThreadRun]
]
"""Begins a run of heads, by their ids, with a deadline."""


@contextlib.contextmanager
def no_heads(_ids: Sequence[str], _deadline: Deadline) -> Iterator[EncoderThreadRun]:
    """Runs no head in the thread that encodes."""
    yield EncoderThreadRun()
