"""A clock that a test advances by hand.

A deadline on this clock does not come nearer by itself, even on a busy machine.
"""


class ManualClock:
    """A monotonic clock in seconds that only `advance` moves."""

    def __init__(self, now: float = 100.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        """Advances the clock."""
        self.now += seconds
