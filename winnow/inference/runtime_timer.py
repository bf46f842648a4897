"""Timing several sessions against one another: they run the same input in turns.

What counts is processor time. On a busy machine a run that is handed to another thread waits for
the processor longer than one in the thread that asks. Does not know what is made of the times.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from winnow.deadline import Clock
from winnow.inference.session import Inputs, Session

_LEAST = 3
"""Rounds, however long a run takes: a median of fewer would be chance."""
_LONGER = 10
"""Times as long as wanted: then one round must do, since somebody waits for the start."""


@dataclass(eq=False, slots=True)
class Timed:
    """A session, and what its runs took."""

    name: str
    session: Session
    seconds: list[float] = field(default_factory=list)
    """Of the process's processor time, each run."""
    fault: str = ""
    """Why it cannot run the input; empty if it can."""

    def run(self, inputs: Inputs, cpu: Clock) -> None:
        """Runs once, unless a run has failed."""
        if self.fault:
            return
        began = cpu()
        try:
            self.session.run(inputs)
        except Exception as error:  # noqa: BLE001 (runtimes raise what they like)
            self.fault = reason(error)
        else:
            self.seconds.append(cpu() - began)


def run_in_turns(
    sessions: Sequence[Timed], inputs: Inputs, seconds: float, clock: Clock, cpu: Clock
) -> None:
    """Has all sessions run `inputs` for about so many seconds in all; ends early if one is left,
    and later where few runs fit into that.

    `clock` says when it ends, `cpu` what processor time the process has spent.

    Its first run is not counted, since it is slow in every runtime.
    """
    _round(sessions, inputs, cpu)
    for each in sessions:
        each.seconds.clear()
    began, rounds = clock(), 0
    while sum(not each.fault for each in sessions) > 1 and (
        clock() < began + seconds * (_LONGER if rounds < _LEAST else 1) or not rounds
    ):
        # who comes second finds a cache that the first one has filled, so they change places
        _round(sessions if rounds % 2 else reversed(sessions), inputs, cpu)
        rounds += 1


def _round(sessions: Iterable[Timed], inputs: Inputs, cpu: Clock) -> None:
    for each in sessions:
        each.run(inputs, cpu)


def reason(error: Exception) -> str:
    """What an error says, or its name if it says nothing."""
    return str(error) or type(error).__name__
