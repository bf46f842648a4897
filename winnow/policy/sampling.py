"""Decides which of many log lines of one kind are written. Pure.

Under overload every refusal would be a line, and the log would grow by megabytes a minute. So the
first lines of each second are written, and the others are counted.
"""

from collections.abc import Callable
from dataclasses import dataclass

Kind = tuple[str, ...]
PERIOD = 1.0
"""Seconds that lines are counted over."""


@dataclass(slots=True)
class _Period:
    began: float
    written: int = 0
    withheld: int = 0


class Sampler:
    """Lets the first lines of each kind through, and counts the rest; on a clock that is given."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._periods: dict[Kind, _Period] = {}

    def allows(self, kind: Kind, most: int) -> bool:
        """Whether to write this line; counts it. At most `most` lines of a kind are written in a
        period.
        """
        period = self._periods.get(kind)
        if period is None or self._over(period):
            withheld = period.withheld if period else 0  # until `withheld` was asked for
            period = self._periods[kind] = _Period(self._clock(), withheld=withheld)
        if period.written < most:
            period.written += 1
            return True
        period.withheld += 1
        return False

    def withheld(self, unfinished: bool = False) -> dict[Kind, int]:
        """Numbers of lines that were withheld in periods that are over, and in `unfinished` ones if
        asked for; forgets these periods.
        """
        over = {
            kind: period
            # a list, since garbage that is collected meanwhile may log a line
            for kind, period in list(self._periods.items())
            if unfinished or self._over(period)
        }
        for kind in over:
            del self._periods[kind]
        return {kind: period.withheld for kind, period in over.items() if period.withheld}

    def due(self) -> float | None:
        """Seconds until `withheld` has numbers; None if no line was withheld."""
        ends = [each.began + PERIOD for each in list(self._periods.values()) if each.withheld]
        return max(min(ends) - self._clock(), 0.0) if ends else None

    def _over(self, period: _Period) -> bool:
        return self._clock() - period.began >= PERIOD
