"""Decides which of many log lines of one kind are written. Pure.

Under overload every refusal would be a line, and the log would grow by megabytes a minute. So the
first lines of each second are written, and the rest is counted.
"""

from collections.abc import Callable
from dataclasses import dataclass

Kind = tuple[str, ...]
PERIOD = 1.0
"""Length of a counting period, in seconds."""


@dataclass(slots=True)
class _Period:
    began: float
    written: int = 0
    withheld: int = 0


class Sampler:
    """Allows the first lines of each kind in a period, and counts the rest."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._periods: dict[Kind, _Period] = {}

    def allows(self, kind: Kind, max_lines: int) -> bool:
        """Whether to write this line; counts it.

        At most `max_lines` lines of a kind are written in a period.
        """
        period = self._periods.get(kind)
        if period is None or self._has_ended(period):
            withheld = period.withheld if period else 0  # until `withheld` reports it
            period = self._periods[kind] = _Period(self._clock(), withheld=withheld)
        if period.written < max_lines:
            period.written += 1
            return True
        period.withheld += 1
        return False

    def withheld(self, unfinished: bool = False) -> dict[Kind, int]:
        """Returns the number of withheld lines of each kind, and forgets the periods counted.

        It counts ended periods, and with `unfinished` also the current ones.
        """
        ended = {
            kind: period
            # a list, because a garbage collection meanwhile may log a line
            for kind, period in list(self._periods.items())
            if unfinished or self._has_ended(period)
        }
        for kind in ended:
            del self._periods[kind]
        return {kind: period.withheld for kind, period in ended.items() if period.withheld}

    def seconds_until_report(self) -> float | None:
        """Seconds until `withheld` has a result; None if no line was withheld."""
        ends = [each.began + PERIOD for each in list(self._periods.values()) if each.withheld]
        return max(min(ends) - self._clock(), 0.0) if ends else None

    def _has_ended(self, period: _Period) -> bool:
        return self._clock() - period.began >= PERIOD
