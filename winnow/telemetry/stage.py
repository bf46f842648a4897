"""The progress of a stage of long work, and when to write a line about it. Pure."""

from collections import deque
from collections.abc import Callable

EVERY = 10.0
"""Seconds between two lines."""
_MARKS = 7
"""Lines over which the rate is computed: the last minute."""
_MINUTE, _HOUR = 60, 3600
_SLOW = 10


class StageClock:
    """Counts steps on a given clock."""

    def __init__(self, name: str, total: int | None, done: int, clock: Callable[[], float]) -> None:
        """`done`: steps of an earlier run, which do not count for the rate."""
        self._name, self._total, self._clock = name, total, clock
        self._done = done
        self._began = (clock(), done)
        self._marks = deque([self._began], maxlen=_MARKS)

    def advance(self, steps: int) -> None:
        """Counts steps as done."""
        self._done += steps

    def due(self) -> bool:
        """Whether the next line is due."""
        return self._clock() - self._marks[-1][0] >= EVERY

    def opening(self) -> str:
        """The line at the start of the stage."""
        ahead = "" if self._total is None else f": {self._total - self._done:,} to do"
        return f"{self._name}{ahead}"

    def line(self) -> str:
        """A line about the progress; the next one is due some seconds later."""
        rate = self._rate(self._marks[0])
        self._marks.append((self._clock(), self._done))
        return ", ".join(filter(None, [self._counted(), _speed(rate), self._left(rate)]))

    def summary(self) -> str:
        """The line at the end of the stage."""
        spent = duration(self._clock() - self._began[0])
        speed = _speed(self._rate(self._began))
        return ", ".join(filter(None, [f"{self._counted()} in {spent}", speed]))

    def _rate(self, since: tuple[float, int]) -> float:
        """Steps a second; 0 if unknown."""
        seconds = self._clock() - since[0]
        return (self._done - since[1]) / seconds if seconds > 0 else 0.0

    def _counted(self) -> str:
        if self._total is None:
            return f"{self._name}: {self._done:,}"
        share = f" ({100 * self._done // self._total} %)" if self._total else ""
        return f"{self._name}: {self._done:,} of {self._total:,}{share}"

    def _left(self, rate: float) -> str:
        if self._total is None or not rate or self._done >= self._total:
            return ""
        return f"{duration((self._total - self._done) / rate)} left"


def duration(seconds: float) -> str:
    """A duration: 42 s, 52 min, 3 h 12 min."""
    if seconds < _SLOW:
        return f"{seconds:.1f} s"
    if seconds < _MINUTE:
        return f"{seconds:.0f} s"
    minutes = round(seconds / _MINUTE)
    if seconds < _HOUR:
        return f"{minutes} min"
    return f"{minutes // 60:,} h {minutes % 60} min"


def _speed(rate: float) -> str:
    if not rate:
        return ""
    return f"{rate:,.0f}/s" if rate >= _SLOW else f"{rate:.1f}/s"
