"""The moment after which an answer is useless.

Knows a clock that it is given; knows no gRPC.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass

from winnow.errors import DeadlineExceededError

Clock = Callable[[], float]
LONGEST = 3_600.0
"""Most seconds of a call, also if its caller allows more. gRPC takes centuries for the past."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A point on a monotonic clock, in seconds."""

    at: float
    clock: Clock = time.monotonic

    @classmethod
    def after(cls, seconds: float, clock: Clock = time.monotonic) -> "Deadline":
        """A deadline `seconds` from now."""
        return cls(clock() + seconds, clock)

    def left(self) -> float:
        """Seconds left; negative once it has passed."""
        return self.at - self.clock()

    def expired(self) -> bool:
        """Whether it has passed."""
        return self.left() <= 0

    def earlier(self, seconds: float) -> "Deadline":
        """The same moment less a reserve, for work that must finish before the caller's."""
        return Deadline(self.at - seconds, self.clock)

    def check(self, doing: str) -> None:
        """Raises DeadlineExceededError if it has passed; `doing` names the work given up."""
        if self.expired():
            raise DeadlineExceededError(f"the deadline passed before {doing}")
