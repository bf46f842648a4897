"""Describes the progress of a stage of long work in lines of text, and when each is due. Pure."""

from collections import deque
from collections.abc import Callable

LINE_INTERVAL = 10.0
"""Seconds between two lines."""
_RATE_LINES = 7
"""Number of recent lines from which the rate is computed, which span about a minute."""
_MINUTE, _HOUR = 60, 3600
_DECIMALS_BELOW = 10


class StageClock:
    """Counts the steps of one stage, and describes its progress."""

    def __init__(self, name: str, total: int | None, done: int, clock: Callable[[], float]) -> None:
        """`total`: number of steps; None if not known.

        `done`: number of steps from an earlier run, which do not count for the rate.
        """
        self._name, self._total, self._clock = name, total, clock
        self._done = done
        self._start = (clock(), done)
        self._recent = deque([self._start], maxlen=_RATE_LINES)

    def advance(self, steps: int) -> None:
        """Adds `steps` to the finished steps."""
        self._done += steps

    def is_due(self) -> bool:
        """Whether the next progress line is due."""
        return self._clock() - self._recent[-1][0] >= LINE_INTERVAL

    def opening_line(self) -> str:
        """Returns the line for the start of the stage."""
        ahead = "" if self._total is None else f": {self._total - self._done:,} to do"
        return f"{self._name}{ahead}"

    def progress_line(self) -> str:
        """Returns a line with the progress. The next line is due after `LINE_INTERVAL`."""
        rate = self._rate(self._recent[0])
        self._recent.append((self._clock(), self._done))
        return ", ".join(
            filter(None, [self._done_text(), _rate_text(rate), self._remaining_text(rate)])
        )

    def summary(self) -> str:
        """Returns the line for the end of the stage."""
        spent = duration(self._clock() - self._start[0])
        speed = _rate_text(self._rate(self._start))
        return ", ".join(filter(None, [f"{self._done_text()} in {spent}", speed]))

    def _rate(self, since: tuple[float, int]) -> float:
        """Returns the steps per second since a (time, steps) pair; 0 if not known."""
        seconds = self._clock() - since[0]
        return (self._done - since[1]) / seconds if seconds > 0 else 0.0

    def _done_text(self) -> str:
        if self._total is None:
            return f"{self._name}: {self._done:,}"
        share = f" ({100 * self._done // self._total} %)" if self._total else ""
        return f"{self._name}: {self._done:,} of {self._total:,}{share}"

    def _remaining_text(self, rate: float) -> str:
        if self._total is None or not rate or self._done >= self._total:
            return ""
        return f"{duration((self._total - self._done) / rate)} left"


def duration(seconds: float) -> str:
    """Formats a duration: 4.2 s, 42 s, 52 min, 3 h 12 min."""
    if seconds < _DECIMALS_BELOW:
        return f"{seconds:.1f} s"
    if seconds < _MINUTE:
        return f"{seconds:.0f} s"
    minutes = round(seconds / _MINUTE)
    if seconds < _HOUR:
        return f"{minutes} min"
    return f"{minutes // 60:,} h {minutes % 60} min"


def _rate_text(rate: float) -> str:
    if not rate:
        return ""
    return f"{rate:,.0f}/s" if rate >= _DECIMALS_BELOW else f"{rate:.1f}/s"
