"""How fast work gets done while there is any.

Knows when pieces of work were done and a clock; does not know what they are or how many are worked
on at once. Time per piece is counted once for all that are in hand, so it falls with every thread
or machine that helps. Where little is in hand not all of them do, and it comes out too long.
"""

from winnow.deadline import Clock
from winnow.policy.recent import DecayedMean


class Pace:
    """Seconds per piece, lately."""

    def __init__(self, half_life: float, clock: Clock) -> None:
        """`half_life`: seconds after which a measured speed counts half."""
        self._mean, self._clock = DecayedMean(half_life, clock), clock
        self._since = clock()

    @property
    def seconds(self) -> float | None:
        """Seconds of being busy per piece done; what was assumed, or None, before the first one."""
        return self._mean.value

    def assume(self, seconds: float) -> None:
        """Counts like one piece done now, which took so long: an estimate to begin with."""
        self._mean.add(seconds)

    def begin(self) -> None:
        """From now on there is work, after there was none."""
        self._since = self._clock()

    def done(self, pieces: int) -> None:
        """So many pieces are done, 0 or more, since the last ones were or since it began."""
        if pieces:
            now = self._clock()
            self._mean.add((now - self._since) / pieces, weight=pieces)
            self._since = now
