"""Cores that all work of a machine shares, as Linux shares them (processor sharing).

Knows seconds of work; does not know whose. Work that gives way (niceness 5, as readers have) gets a
third of the share of other work while there is not enough for all.
"""

import heapq
import itertools

import simpy

GENTLE_WEIGHT = 335 / 1024
"""Of niceness 5 by niceness 0, in Linux."""
_ROUNDING = 1e-12


class Work(simpy.Event):
    """Happens when it is done."""

    gentle = False


class Machine:
    """Some cores."""

    def __init__(self, env: simpy.Environment, cores: int, together: float = 1.0) -> None:
        """`together`: the speed of a core while all are busy, as a share of its speed alone."""
        self._env, self._cores, self._together = env, cores, together
        self._lanes = _Lane(), _Lane()
        """Work that is prompt, and work that gives way."""
        self._since = env.now
        self._wakes = 0
        self.worked = 0.0
        """Seconds of cores so far."""

    def work(self, seconds: float, gentle: bool = False) -> Work:
        """Begins some work now: so many seconds of a core that does nothing else."""
        self._advance()
        done = Work(self._env)
        done.gentle = gentle
        self._lanes[gentle].add(seconds, done)
        self._plan()
        return done

    def drop(self, work: Work) -> None:
        """Ends work that is not done."""
        if not work.triggered:
            self._advance()
            self._lanes[work.gentle].remove(work)
            self._plan()

    def _advance(self) -> None:
        """Counts what was done since the last change."""
        now = self._env.now
        passed = now - self._since
        self._since = now
        if passed > 0:
            self.worked += passed * min(sum(lane.waiting for lane in self._lanes), self._cores)
            for lane, speed in zip(self._lanes, self._speeds(), strict=True):
                lane.done += passed * speed

    def _plan(self) -> None:
        """Wakes when the next piece of work is done, unless something changes before."""
        self._wakes += 1
        left = [
            lane.left() / speed
            for lane, speed in zip(self._lanes, self._speeds(), strict=True)
            if lane.waiting
        ]
        if left:
            wake = simpy.Timeout(self._env, max(min(left), 0.0), self._wakes)
            wake.callbacks.append(self._wake)

    def _wake(self, event: simpy.Event) -> None:
        if event.value != self._wakes:
            return  # something changed since
        self._advance()
        for lane in self._lanes:
            lane.finish()
        self._plan()

    def _speeds(self) -> tuple[float, float]:
        """Of each piece of prompt and of gentle work, by that of a core alone."""
        prompt, gentle = (lane.waiting for lane in self._lanes)
        busy, cores = prompt + gentle, self._cores
        crowd = (min(busy, cores) - 1) / (cores - 1) if cores > 1 and busy else 0.0
        core = 1 - (1 - self._together) * crowd
        if busy <= cores:
            return core, core
        share = cores / (prompt + gentle * GENTLE_WEIGHT)
        first = min(share, 1.0)
        second = (cores - prompt * first) / gentle if gentle else 0.0
        return core * first, core * max(second, _ROUNDING)


class _Lane:
    """Work of one kind: each piece gets as much of a core as any other."""

    def __init__(self) -> None:
        self.done = 0.0
        """Seconds of work that a piece which was always there would have got."""
        self.waiting = 0
        self._heap: list[tuple[float, int, Work]] = []
        self._gone: set[Work] = set()
        self._numbers = itertools.count()

    def add(self, seconds: float, work: Work) -> None:
        heapq.heappush(self._heap, (self.done + seconds, next(self._numbers), work))
        self.waiting += 1

    def remove(self, work: Work) -> None:
        self._gone.add(work)
        self.waiting -= 1

    def left(self) -> float:
        """Seconds of work until the next piece is done."""
        while self._heap[0][2] in self._gone:
            self._gone.discard(heapq.heappop(self._heap)[2])
        return self._heap[0][0] - self.done

    def finish(self) -> None:
        """Ends what is done."""
        while self.waiting and self.left() <= _ROUNDING * max(self.done, 1.0):
            work = heapq.heappop(self._heap)[2]
            self.waiting -= 1
            work.succeed()
