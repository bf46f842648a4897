"""Measures the seconds per piece of work while there is work.

Knows a clock and when pieces of work were done; does not know what they are, or how many run at
once. More threads or machines reduce the time per piece. With little work some of them are idle,
and the measured time is too long.
"""

from winnow.deadline import Clock
from winnow.policy.recent import DecayedMean


class Pace:
    """The recent mean of seconds per piece of work, over all workers together."""

    def __init__(self, half_life: float, clock: Clock) -> None:
        """`half_life`: seconds after which a measurement counts half."""
        self._mean, self._clock = DecayedMean(half_life, clock), clock
        self._since = clock()

    @property
    def seconds(self) -> float | None:
        """Seconds per piece while there is work; None before a measurement or estimate."""
        return self._mean.value

    def assume(self, seconds: float) -> None:
        """Counts an estimate as if a piece had taken `seconds`."""
        self._mean.add(seconds)

    def begin(self) -> None:
        """Records that work begins now, after a time without work."""
        self._since = self._clock()

    def done(self, pieces: int) -> None:
        """Counts pieces (0 or more) that were done since the last call of `begin` or `done`."""
        if pieces:
            now = self._clock()
            self._mean.add((now - self._since) / pieces, weight=pieces)
            self._since = now
