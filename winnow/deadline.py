"""Deadlines of calls, on any monotonic clock."""

import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from winnow.errors import DeadlineExceededError

Clock = Callable[[], float]
Sleep = Callable[[float], Awaitable[None]]
"""Waits for a number of seconds."""
MAX_SECONDS = 3_600.0
"""Maximum seconds of any call. gRPC treats deadlines that are centuries away as past."""
_MAX_REPLY_SECONDS, _REPLY_SHARE = 0.01, 0.1
"""Limits of the time reserved for a reply: in seconds, and as a share of the remaining time.

Serialising and sending a hundred readings takes about a millisecond, or several on a busy event
loop.
"""


@dataclass(frozen=True, slots=True)
class Deadline:
    """A time on a monotonic clock, in seconds."""

    at: float
    clock: Clock = time.monotonic

    @classmethod
    def after(cls, seconds: float, clock: Clock = time.monotonic) -> "Deadline":
        """Returns the deadline `seconds` from now."""
        return cls(clock() + seconds, clock)

    def left(self) -> float:
        """Returns the remaining seconds; negative after the deadline."""
        return self.at - self.clock()

    def expired(self) -> bool:
        """Returns whether the deadline has passed."""
        return self.left() <= 0

    def earlier(self, seconds: float) -> "Deadline":
        """Returns a deadline that is `seconds` earlier, as a reserve for the caller."""
        return Deadline(self.at - seconds, self.clock)

    def before_reply(self) -> "Deadline":
        """Returns an earlier deadline, which reserves time for sending the reply.

        For work whose partial results must reach the caller: a reply after the caller's deadline is
        lost.
        """
        return self.earlier(max(min(_MAX_REPLY_SECONDS, self.left() * _REPLY_SHARE), 0.0))

    def check(self, work: str) -> None:
        """Raises DeadlineExceededError if the deadline has passed; `work` names the next step."""
        if self.expired():
            raise DeadlineExceededError(f"the deadline passed before {work}")
