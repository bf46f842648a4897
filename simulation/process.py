"""A simulated process: what runs in it, and whether it runs.

A callback belongs to the process in whose context it was scheduled. A killed process runs nothing
more, not even `finally` blocks, just as after kill -9.
"""

from collections import deque
from contextvars import Context, ContextVar
from dataclasses import dataclass, field
from typing import Any


@dataclass(eq=False, slots=True)
class Process:
    """One run of a process. A restarted process is a new object."""

    name: str
    alive: bool = True
    paused: bool = False
    """Whether it is stopped, as by SIGSTOP; its callbacks wait."""
    wall_offset: float = 0.0
    """Seconds by which its wall clock is ahead."""
    slowness: float = 1.0
    """Factor of the durations of its work in threads."""
    full_disk: bool = False
    """Whether its disk has no room."""
    ready: deque[Any] = field(default_factory=deque)
    """The handles of its callbacks that can run now, in the order in which asyncio runs them."""
    _context: Context = field(default_factory=Context)

    def __post_init__(self) -> None:
        self._context.run(_CURRENT.set, self)

    def context(self) -> Context:
        """Returns a context whose callbacks belong to this process, with no other variables."""
        return self._context.copy()


_CURRENT: "ContextVar[Process]" = ContextVar("process")
OUTSIDE = Process("outside")
"""The process of everything that is not part of the cluster: clients, faults and the network."""


def current_process(context: Context | None = None) -> Process:
    """Returns the process of the running callback, or of a context."""
    return _CURRENT.get(OUTSIDE) if context is None else context.get(_CURRENT, OUTSIDE)
