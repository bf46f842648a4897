"""A simulated process: what runs in it, and whether it runs.

A callback belongs to the process in whose context it was scheduled. A killed process runs nothing
more, not even `finally` blocks, just as after kill -9.
"""

from asyncio import Handle
from collections import deque
from contextvars import Context, ContextVar, copy_context
from dataclasses import dataclass, field


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
    ready: deque[Handle] = field(default_factory=deque)
    """Its callbacks that can run now, in the order in which asyncio runs them."""

    def context(self) -> Context:
        """Returns a context whose callbacks belong to this process."""
        context = copy_context()
        context.run(_CURRENT.set, self)
        return context


OUTSIDE = Process("outside")
"""The process of everything that is not part of the cluster: clients, faults and the network."""
_CURRENT: ContextVar[Process] = ContextVar("process", default=OUTSIDE)


def current_process(context: Context | None = None) -> Process:
    """Returns the process of the running callback, or of a context."""
    return _CURRENT.get() if context is None else context.get(_CURRENT, OUTSIDE)
