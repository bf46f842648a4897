"""Time that passes only when a test says so.

A deadline by such a clock never comes nearer: a waiter waits in full from then on, and
loses nothing to a busy machine before.
"""


class ManualClock:
    """A monotonic clock in seconds that stands still."""

    def __init__(self, now: float = 100.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now

    def advance(self, seconds: float) -> None:
        """Lets time pass."""
        self.now += seconds
