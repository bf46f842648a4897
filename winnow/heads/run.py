"""Runs several open heads on one text, in one thread."""

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
    """Runs heads sequentially. Results that are ready by the deadline are kept."""

    def __init__(
        self, heads: Sequence[Head], deadline: Deadline, on_end: Callable[[], object]
    ) -> None:
        """`on_end` is called once, from any thread, when the run no longer uses the heads."""
        self._heads, self._deadline, self._on_end = heads, deadline, on_end
        self._claim = threading.Lock()
        """Taken once, by the first call of `run` or `stop`."""
        self._stopped = False
        self._results: list[HeadResult | None] = [None] * len(heads)

    def run(self, states: States) -> None:
        """Runs the heads in the calling thread. Does nothing after an earlier `run` or `stop`."""
        if not self._claim.acquire(blocking=False):
            return
        try:
            wide = states.astype(np.float32)
            for index, head in enumerate(self._heads):
                if self._stopped or self._deadline.expired():
                    break
                self._results[index] = _predict(head, wide)
        finally:
            self._on_end()

    def stop(self) -> list[HeadResult | None]:
        """Stops the run after the current head, or prevents a run that has not started.

        Returns the result of each head, in order; None for a head that did not run.
        """
        self._stopped = True
        if self._claim.acquire(blocking=False):
            self._on_end()
        return list(self._results)


def _predict(head: Head, states: FloatStates) -> HeadResult:
    try:
        return head.predict(states)
    except WinnowError as error:
        return error
    except Exception as error:  # noqa: BLE001 (the other heads must still run)
        _log.error("head failed", head=head.manifest.id, exc_info=error)
        return UnavailableError(f"head {head.manifest.id} failed; see the server's log")


class EncoderThreadRun:
    """A run of heads in the encoder's thread, right after it has encoded a text.

    A head takes a tenth of a millisecond, less than passing states and results between threads.
    `Heads.apply` runs the heads that this run leaves out.
    """

    def __init__(
        self, run: HeadRun | None = None, applied: Callable[[], list[Applied]] = list
    ) -> None:
        """`run`: the heads to run, if any; `applied`: stops the run and returns its results."""
        self._run, self._applied = run, applied
        self.seconds = 0.0
        """Time spent running heads."""

    def run(self, encoding: TextEncoding) -> None:
        """Runs the heads in the calling thread; does nothing after `applied` was called."""
        if self._run is not None and encoding.states is not None:
            started_at = time.perf_counter()
            self._run.run(encoding.states)
            self.seconds = time.perf_counter() - started_at

    def applied(self) -> list[Applied]:
        """Stops the run and returns the results of the heads that ran. Call it once."""
        return self._applied()


BeginEncoderThreadRun = Callable[
    [Sequence[str], Deadline], AbstractContextManager[EncoderThreadRun]
]
"""Prepares a run of the heads with the given ids, with a deadline."""


@contextlib.contextmanager
def run_no_heads(_ids: Sequence[str], _deadline: Deadline) -> Iterator[EncoderThreadRun]:
    """A `BeginEncoderThreadRun` that runs no heads."""
    yield EncoderThreadRun()
