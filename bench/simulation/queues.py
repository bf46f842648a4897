"""What waits for a core: the pieces of an event loop, and the items of a pool of threads.

First come, first served; both know their machine and nothing of what is done.
"""

from collections import deque

import simpy

from bench.simulation.machine import Machine, Work


class Threads:
    """A pool of threads; an event loop is a pool of one."""

    def __init__(
        self, env: simpy.Environment, machine: Machine, threads: int, gentle: bool = False
    ) -> None:
        """`gentle`: whether they give way to other work of the machine."""
        self._env, self._machine, self._gentle = env, machine, gentle
        self._idle = threads
        self._waiting: deque[Task] = deque()

    def do(self, seconds: float) -> "Task":
        """Some work, which happens when it is done."""
        task = Task(self._env, self, seconds)
        self._waiting.append(task)
        self._go_on()
        return task

    def cancel(self, task: "Task") -> None:
        """Takes back what waits, and ends what is being done."""
        if task.triggered:
            return
        if task.work is None:
            self._waiting.remove(task)
        else:
            self._machine.drop(task.work)
            self._idle += 1
            self._go_on()

    def _go_on(self) -> None:
        while self._idle and self._waiting:
            task = self._waiting.popleft()
            self._idle -= 1
            task.work = self._machine.work(task.seconds, self._gentle)
            task.work.callbacks.append(task.end)

    def ended(self, task: "Task") -> None:
        """Counts the end of a task that was done."""
        self._idle += 1
        task.succeed()
        self._go_on()


class Task(simpy.Event):
    """Work of a pool."""

    def __init__(self, env: simpy.Environment, pool: Threads, seconds: float) -> None:
        super().__init__(env)
        self.seconds = seconds
        self.work: Work | None = None
        """Once a thread has begun."""
        self._pool = pool

    def end(self, _: simpy.Event) -> None:
        """Is called by the machine."""
        self._pool.ended(self)

    def cancel(self) -> None:
        """Nobody waits for it any more."""
        self._pool.cancel(self)
