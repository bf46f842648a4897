"""Ends waiting for a store that does not reply. Knows no store."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Result = TypeVar("Result")
STALLED_SECONDS = 120.0
"""Seconds without a reply or a copied byte after which a request is given up."""


class StoreStalledError(Exception):
    """A store has not replied for some time."""

    def __init__(self, seconds: float) -> None:
        super().__init__(f"no reply and no data for {seconds:g} s: try again later")


class WatchedRequest(Generic[Result]):
    """A blocking request in a separate thread, which is given up if it makes no progress.

    A request that was given up goes on in its thread, and its result is not used. The thread does
    not delay the exit of the process.
    """

    def __init__(self, request: Callable[[], Result], seconds: float) -> None:
        """`seconds` is the longest time without progress."""
        self._request, self._seconds = request, seconds
        self._done = threading.Event()
        self._results: list[Result] = []
        self._error: BaseException | None = None

    def result(self, progress: Callable[[], int] = lambda: 0) -> Result:
        """Runs the request; returns its result or raises its error.

        `progress` returns a number that grows with the progress. Raises StoreStalledError if the
        number stays equal for too long.
        """
        threading.Thread(target=self._run, name="store request", daemon=True).start()
        before = progress()
        while not self._done.wait(self._seconds):
            if (now := progress()) == before:
                raise StoreStalledError(self._seconds)
            before = now
        if self._error is not None:
            raise self._error
        return self._results[0]

    def _run(self) -> None:
        try:
            self._results.append(self._request())
        except BaseException as error:  # noqa: BLE001 (raised in the thread of the caller)
            self._error = error
        finally:
            self._done.set()
