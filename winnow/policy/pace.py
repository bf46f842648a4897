"""Measures how fast work gets done while there is any.

Knows a clock and when pieces of work were done; does not know what they are or how many are worked
on at once. The time per piece falls with every thread or machine that helps. With little work in
hand not all of them help, and the time per piece comes out too long.
"""

from winnow.deadline import Clock
from winnow.policy.recent import DecayedMean


class Pace:
    """Recent seconds per piece."""

    def __init__(self, half_life: float, clock: Clock) -> None:
        """`half_life`: seconds after which a measured speed counts half."""
        self._mean, self._clock = DecayedMean(half_life, clock), clock
        self._since = clock()

    @property
    def seconds(self) -> float | None:
        """Busy seconds per piece; before the first piece the assumed ones, or None."""
        return self._mean.value

    def assume(self, seconds: float) -> None:
        """Counts an estimate, like one piece done now that took `seconds`."""
        self._mean.add(seconds)

    def begin(self) -> None:
        """Notes that there is work from now on, after there was none."""
        self._since = self._clock()

    def done(self, pieces: int) -> None:
        """Counts pieces, 0 or more, done since the last call or since the work began."""
        if pieces:
            now = self._clock()
            self._mean.add((now - self._since) / pieces, weight=pieces)
            self._since = now
