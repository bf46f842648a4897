"""Log sampling: limits how many log lines of one kind are written per second. Pure.

Under overload every refusal would be a line, and the log would grow by megabytes per minute. So the
first lines of each second are written, and the others are only counted.
"""

from collections.abc import Callable
from dataclasses import dataclass

Kind = tuple[str, ...]
"""Identifies log lines that count together."""
PERIOD = 1.0
"""Length of a counting period, in seconds."""


@dataclass(slots=True)
class _Period:
    began: float
    written: int = 0
    withheld: int = 0


class LogSampler:
    """Allows the first lines of each kind in a period, and counts the withheld ones."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._periods: dict[Kind, _Period] = {}

    def allows(self, kind: Kind, max_lines: int) -> bool:
        """Counts a line, and returns whether to write it.

        Allows at most `max_lines` lines of a kind per period.
        """
        period = self._periods.get(kind)
        if period is None or self._has_ended(period):
            withheld = period.withheld if period else 0  # kept until `withheld_lines` reports it
            period = self._periods[kind] = _Period(self._clock(), withheld=withheld)
        if period.written < max_lines:
            period.written += 1
            return True
        period.withheld += 1
        return False

    def withheld_lines(self, include_current: bool = False) -> dict[Kind, int]:
        """Returns the number of withheld lines of each kind in ended periods, and forgets them.

        `include_current`: also include the current periods.
        """
        ended = {
            kind: period
            # a copy: a garbage collection during the loop may log a line
            for kind, period in list(self._periods.items())
            if include_current or self._has_ended(period)
        }
        for kind in ended:
            del self._periods[kind]
        return {kind: period.withheld for kind, period in ended.items() if period.withheld}

    def seconds_until_report(self) -> float | None:
        """Seconds until `withheld_lines` has a result; None if no line was withheld."""
        ends = [each.began + PERIOD for each in list(self._periods.values()) if each.withheld]
        return max(min(ends) - self._clock(), 0.0) if ends else None

    def _has_ended(self, period: _Period) -> bool:
        return self._clock() - period.began >= PERIOD
