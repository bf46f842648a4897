"""Measures the seconds per piece of work while there is work.

Knows a clock and when pieces of work were done; does not know what they are or how many run at the
same time. More threads or machines reduce the time per piece. With little work some of them are
idle, so the measured time is too long then.
"""

from winnow.deadline import Clock
from winnow.policy.recent import DecayedMean


class Pace:
    """The recent seconds per piece."""

    def __init__(self, half_life: float, clock: Clock) -> None:
        """`half_life`: seconds after which a measurement counts half."""
        self._mean, self._clock = DecayedMean(half_life, clock), clock
        self._since = clock()

    @property
    def seconds(self) -> float | None:
        """Seconds per piece while there is work; None without a measurement or estimate."""
        return self._mean.value

    def assume(self, seconds: float) -> None:
        """Counts an estimate like a measured piece that took `seconds`."""
        self._mean.add(seconds)

    def begin(self) -> None:
        """Records that work begins now, after there was none."""
        self._since = self._clock()

    def done(self, pieces: int) -> None:
        """Counts pieces, 0 or more, done since the last call or since the work began."""
        if pieces:
            now = self._clock()
            self._mean.add((now - self._since) / pieces, weight=pieces)
            self._since = now
