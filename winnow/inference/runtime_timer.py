"""Times several sessions against one another: they run the same input in turns.

Processor time counts. On a busy machine a run that is handed to another thread waits for the
processor longer than a run in the calling thread.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from winnow.deadline import Clock
from winnow.inference.session import Inputs, Session

MARGIN = 0.1
"""Share of time that has to be saved. Measurements of equal machines differ by less."""
_LEAST = 3
"""Least number of rounds, also of slow models: a median of fewer would be chance."""
_LONGER = 10
"""Factor of the wanted time after which one round is enough, since the start waits for it."""


@dataclass(eq=False, slots=True)
class Timed:
    """A session, and the times of its runs."""

    name: str
    session: Session
    seconds: list[float] = field(default_factory=list)
    """Processor time of each run."""
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
    """Has all sessions run `inputs` in turns, for about `seconds` in all.

    It ends early if one session is left, and later if few runs fit into the time. First runs do not
    count, since they are slow in every runtime. `clock` says when it ends, `cpu` gives the
    processor time of the process.
    """
    _round(sessions, inputs, cpu)
    for each in sessions:
        each.seconds.clear()
    began, rounds = clock(), 0
    while sum(not each.fault for each in sessions) > 1 and (
        clock() < began + seconds * (_LONGER if rounds < _LEAST else 1) or not rounds
    ):
        # the second session finds a cache that the first one has filled, so they change places
        _round(sessions if rounds % 2 else reversed(sessions), inputs, cpu)
        rounds += 1


def _round(sessions: Iterable[Timed], inputs: Inputs, cpu: Clock) -> None:
    for each in sessions:
        each.run(inputs, cpu)


def reason(error: Exception) -> str:
    """The text of an error, or its name if it has no text."""
    return str(error) or type(error).__name__


def clearly_fastest(seconds: Sequence[float], margin: float = MARGIN) -> int:
    """Index of the one to take, by the usual `seconds` of each.

    It is the first, unless the fastest saves more than `margin` of the first one's time.
    """
    fastest = min(range(len(seconds)), key=seconds.__getitem__)
    return fastest if seconds[fastest] < (1 - margin) * seconds[0] else 0
