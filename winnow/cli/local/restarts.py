"""Which processes are started again: not one that ends again and again. Pure."""

from collections import defaultdict
from collections.abc import Callable

MOST = 3
"""Times in a window that a process is started again."""
WINDOW = 60.0
"""Seconds."""


class Restarts:
    """Counts, on a clock that is given."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._times: defaultdict[str, list[float]] = defaultdict(list)

    def allow(self, name: str) -> bool:
        """Whether `name` may be started again now; counts it if so."""
        now = self._clock()
        recent = [time for time in self._times[name] if now - time < WINDOW]
        if len(recent) < MOST:
            recent.append(now)
            self._times[name] = recent
            return True
        return False

    def take_back(self, name: str) -> None:
        """It was not started after all: the last time does not count."""
        self._times[name].pop()
