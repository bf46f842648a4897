"""What went wrong with heads just now, so that a store is not asked again at once. Bounded."""

from collections import OrderedDict

from winnow.deadline import Clock
from winnow.errors import WinnowError

_MOST = 1_000
"""Heads; their ids come from outside."""


class RecentFailures:
    """Failures by head, each for a few seconds."""

    def __init__(self, seconds: float, clock: Clock) -> None:
        self._seconds, self._clock = seconds, clock
        self._failures: OrderedDict[str, tuple[float, WinnowError]] = OrderedDict()
        """Until when each is remembered, the oldest first."""

    def add(self, head: str, error: WinnowError) -> None:
        """Remembers a failure."""
        self._failures.pop(head, None)
        self._failures[head] = (self._clock() + self._seconds, error)
        if len(self._failures) > _MOST:
            self._failures.popitem(last=False)

    def check(self, head: str) -> None:
        """Raises what went wrong with a head lately, if anything did."""
        until, error = self._failures.get(head, (0.0, None))
        if error is None:
            return
        if self._clock() < until:
            raise error.with_traceback(None)
        del self._failures[head]
