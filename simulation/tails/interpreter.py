"""The processor time of a simulated process: its event loop, its threads, and Python's lock.

The event loop does one thing at a time. Its callbacks wait while it works. Work in Python, of the
loop and of threads, holds the interpreter's lock. Native work, such as the run of a model, does
not.
"""

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field

from simulation.loop import SimulatedLoop
from simulation.process import OUTSIDE, Process
from simulation.tails.machine import Machine


@dataclass(slots=True)
class Turn:
    """What a thread does in one turn: its processor time, and its messages to the event loop."""

    python: float = 0.0
    """Seconds of work that holds the interpreter's lock."""
    native: float = 0.0
    """Seconds of work that does not, after the other."""
    messages: list[Callable[[], object]] = field(default_factory=list)
    """Is called on the event loop when the work has ended."""


class Interpreter:
    """The event loop and the threads of a process, on a machine."""

    def __init__(self, loop: SimulatedLoop, process: Process, machine: Machine) -> None:
        self._loop, self._process, self.machine = loop, process, machine
        self._waiting: deque[tuple[float, Callable[[], None]]] = deque()
        """Work of the event loop that has not begun."""
        self._is_working = False
        self._for_lock: deque[Callable[[], None]] = deque()
        self._is_locked = False

    def work_on_loop(self, seconds: float, then: Callable[[], None]) -> None:
        """Makes the event loop work; then calls `then`. Work is done in its order."""
        self._waiting.append((seconds, then))
        if not self._is_working:
            self._is_working = True
            self._begin()

    def work_in_thread(self, turn: Turn, weight: float, then: Callable[[], None]) -> None:
        """Runs the work of a thread; then calls `then`."""

        def go_on() -> None:
            if turn.native > 0:
                self.machine.run(turn.native, weight, then)
            else:
                self._loop.run_in(OUTSIDE, then)

        if turn.python > 0:
            self._run_locked(turn.python, weight, go_on)
        else:
            go_on()

    def _begin(self) -> None:
        """Begins the next work of the event loop, if there is any."""
        if not self._waiting:
            self._is_working = False
            return
        seconds, then = self._waiting.popleft()
        self._loop.pause(self._process)
        self._run_locked(seconds, 1.0, lambda: self._end(then))

    def _end(self, then: Callable[[], None]) -> None:
        self._loop.resume(self._process)
        then()
        # after the callbacks that can run now, as in the next round of asyncio
        self._loop.run_in(self._process, self._begin)

    def _run_locked(self, seconds: float, weight: float, then: Callable[[], None]) -> None:
        def begin() -> None:
            self.machine.run(seconds, weight, end)

        def end() -> None:
            self._is_locked = bool(self._for_lock)
            if self._for_lock:
                self._for_lock.popleft()()
            then()

        if self._is_locked:
            self._for_lock.append(begin)
        else:
            self._is_locked = True
            begin()
