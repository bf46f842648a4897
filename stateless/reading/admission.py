"""Admits requests to read texts that can be read in time, and refuses others under overload.

The work of a request is its estimated number of windows. A request is read completely or refused.
"""

from collections.abc import Iterator
from contextlib import contextmanager

from winnow.deadline import Clock, Deadline
from winnow.errors import OverloadedError
from winnow.policy.load import LoadSettings, ReadLoad
from winnow.policy.pace import Pace
from winnow.stateless.reading.metrics import TextReadingMetrics

_RETRY_AFTER = 0.5
"""Seconds after which a caller that was refused early may try again."""


class ReadingAdmission:
    """The windows in flight of all requests."""

    def __init__(
        self, max_windows: int, *, pace: Pace, clock: Clock, metrics: TextReadingMetrics
    ) -> None:
        """`max_windows` limits the windows in flight. `pace` measures the seconds per window."""
        self._load = ReadLoad(LoadSettings.all_or_nothing(max_windows), clock, lambda: pace.seconds)
        self._max_windows, self._pace, self._metrics = max_windows, pace, metrics
        metrics.seconds_per_window.set_function(lambda: pace.seconds or 0.0)

    @property
    def in_flight(self) -> int:
        """Number of windows that wait to be read or are being read."""
        return self._load.reads_in_flight

    @contextmanager
    def enter(self, windows: int, deadline: Deadline, client: str) -> Iterator[None]:
        """Admits the windows of a request within the context.

        Raises DeadlineExceededError if the deadline has passed. Raises OverloadedError if the
        windows cannot be read in time, or exceed the limit.
        """
        if not self.in_flight:
            self._pace.begin()
        try:
            ticket = self._load.admit(windows, deadline.left(), client)
        except OverloadedError as error:
            self._metrics.admission.labels("refused").inc()
            raise OverloadedError(
                f"{self.in_flight} parts of texts are waiting to be read, and {windows} more would "
                f"be late or exceed the client's fair share; try again in "
                f"{error.retry_after:.2f} s",
                error.retry_after,
            ) from error
        self._metrics.admission.labels("granted").inc()
        self._metrics.windows_in_hand.set(self.in_flight)
        try:
            yield
        finally:
            self._load.release(ticket)
            self._metrics.windows_in_hand.set(self.in_flight)

    def count_read(self, windows: int) -> None:
        """Counts windows that were read, which measures the pace."""
        self._pace.done(windows)
        self._metrics.windows.inc(windows)

    def refusal(self, _client: str) -> OverloadedError | None:
        """Returns the error that refuses a request before its texts are received, or None."""
        if self.in_flight < self._max_windows:
            return None
        self._metrics.admission.labels("refused").inc()
        return OverloadedError(
            f"{self.in_flight} parts of texts are waiting to be read, which is the limit; try "
            f"again in {_RETRY_AFTER:g} s",
            _RETRY_AFTER,
        )
