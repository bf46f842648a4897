"""The clocks of the standard library, in virtual time while a simulation runs.

They must be installed before other modules are imported: many have a clock as a default argument.
"""

import time
from typing import Protocol

from simulation.process import current_process

EPOCH = 1_800_000_000.0
"""Unix time at which each simulation begins."""
_NANOSECONDS = 1_000_000_000
_real = {
    name: getattr(time, name) for name in ("monotonic", "perf_counter", "time", "process_time")
}


class _HasTime(Protocol):
    def time(self) -> float:
        """Returns the seconds since the start of the simulation."""


class _Running:
    """The loop of the running simulation, if any."""

    loop: _HasTime | None = None


def set_loop(loop: _HasTime | None) -> None:
    """Makes the clocks show the time of a loop; of the machine with None."""
    _Running.loop = loop


def monotonic() -> float:
    return _Running.loop.time() if _Running.loop is not None else float(_real["monotonic"]())


def wall() -> float:
    """Returns the time of the current process's wall clock, in seconds since 1970."""
    if _Running.loop is None:
        return float(_real["time"]())
    return EPOCH + _Running.loop.time() + current_process().wall_offset


def processor_seconds() -> float:
    """Returns the processor time of this process."""
    return float(_real["process_time"]())


def install() -> None:
    """Replaces the clocks of the standard library."""
    for name in ("monotonic", "perf_counter", "process_time"):
        setattr(time, name, monotonic)
        setattr(time, f"{name}_ns", lambda: int(monotonic() * _NANOSECONDS))
    time.time = wall
    time.time_ns = lambda: int(wall() * _NANOSECONDS)
