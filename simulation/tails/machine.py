"""The cores of a simulated machine, which all its threads share.

Knows amounts of work and their weights; does not know whose work it is. Each thread gets a share of
the cores by its weight, at most one core, as Linux shares them. Slices of time are not simulated.
"""

import heapq
import itertools
from collections.abc import Callable

from simulation.loop import SimulatedHandle, SimulatedLoop
from simulation.process import OUTSIDE

_WEIGHTS = {0: 1024, 5: 335, 10: 110, 15: 36, 19: 15}
"""Weights of threads by niceness, in Linux (`sched_prio_to_weight`)."""
_ROUNDING = 1e-12


def weight_of(nice: int) -> float:
    """Returns the weight of a thread, relative to that of niceness 0."""
    return _WEIGHTS.get(nice, 1024 / 1.25**nice) / _WEIGHTS[0]


class Machine:
    """Some cores of equal speed."""

    def __init__(self, loop: SimulatedLoop, cores: int, together: float = 1.0) -> None:
        """`together` is the speed of a core while all cores work, relative to its speed alone."""
        self._loop, self._cores, self._together = loop, cores, together
        self._lanes: dict[float, _Lane] = {}
        """Running work, by weight."""
        self._since = loop.time()
        self._wake: SimulatedHandle | None = None
        self.busy_seconds = 0.0
        """Sum of the time in which each core worked, in seconds."""

    def run(self, seconds: float, weight: float, done: Callable[[], None]) -> None:
        """Runs work of a thread; calls `done` when it has ended.

        `seconds` is the time of a core if the other cores are idle.
        """
        self._advance()
        self._lanes.setdefault(weight, _Lane()).add(seconds, done)
        self._plan()

    def _advance(self) -> None:
        """Adds what was done since the last change."""
        now = self._loop.time()
        passed, self._since = now - self._since, now
        if passed > 0:
            self.busy_seconds += passed * min(sum(map(len, self._lanes.values())), self._cores)
            for lane, speed in self._speeds():
                lane.done += passed * speed

    def _plan(self) -> None:
        """Wakes when the next piece of work ends, unless something changes before."""
        if self._wake is not None:
            self._wake.cancel()
            self._wake = None
        if left := [lane.left() / speed for lane, speed in self._speeds()]:
            self._wake = self._loop.call_later(
                max(min(left), 0.0), self._end, context=OUTSIDE.context()
            )

    def _end(self) -> None:
        self._wake = None
        self._advance()
        ended = [done for lane in self._lanes.values() for done in lane.finish()]
        self._plan()
        for done in ended:
            done()

    def _speeds(self) -> list[tuple["_Lane", float]]:
        """Returns the lanes with work, and the speed of each piece of their work."""
        lanes = [(weight, lane) for weight, lane in self._lanes.items() if len(lane)]
        free, speeds = float(self._cores), []
        busy = sum(len(lane) for _, lane in lanes)
        crowd = (min(busy, self._cores) - 1) / (self._cores - 1) if self._cores > 1 and busy else 0
        core = 1 - (1 - self._together) * crowd
        waiting = sum(weight * len(lane) for weight, lane in lanes)
        for weight, lane in sorted(lanes, key=lambda each: -each[0]):
            share = min(free * weight / waiting, 1.0)
            speeds.append((lane, max(share * core, _ROUNDING)))
            free -= share * len(lane)
            waiting -= weight * len(lane)
        return speeds


class _Lane:
    """Work of one weight: each piece gets as much of a core as any other."""

    def __init__(self) -> None:
        self.done = 0.0
        """Seconds of work that a piece which was always there would have got."""
        self._heap: list[tuple[float, int, Callable[[], None]]] = []
        self._numbers = itertools.count()

    def __len__(self) -> int:
        return len(self._heap)

    def add(self, seconds: float, done: Callable[[], None]) -> None:
        heapq.heappush(self._heap, (self.done + seconds, next(self._numbers), done))

    def left(self) -> float:
        """Returns the seconds of work until the next piece ends."""
        return self._heap[0][0] - self.done

    def finish(self) -> list[Callable[[], None]]:
        """Removes the pieces that have ended."""
        ended = []
        while self._heap and self.left() <= _ROUNDING * max(self.done, 1.0):
            ended.append(heapq.heappop(self._heap)[2])
        return ended
