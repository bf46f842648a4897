"""Compares the speed of several sessions, which run the same input in turns.

It measures processor time. On a busy machine, elapsed time would favour runtimes that run in the
calling thread: other threads wait longer for the processor.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from winnow.deadline import Clock
from winnow.inference.session import Inputs, Session

MIN_SAVING = 0.1
"""Share of the first session's time that another must save; noise is smaller."""
_MIN_ROUNDS = 3
"""Minimum number of rounds, even for slow models: a median of fewer would be noise."""
_MAX_STRETCH = 10
"""Factor of the requested time after which one round is enough, because the start waits."""


@dataclass(eq=False, slots=True)
class TimedSession:
    """A session, and the times of its runs."""

    name: str
    session: Session
    seconds: list[float] = field(default_factory=list)
    """Processor time of each run."""
    fault: str = ""
    """Why the session cannot run the input; empty if it can."""

    def run(self, inputs: Inputs, cpu: Clock) -> None:
        """Runs once and records the processor time, unless an earlier run failed."""
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
    sessions: Sequence[TimedSession], inputs: Inputs, seconds: float, clock: Clock, cpu: Clock
) -> None:
    """Runs `inputs` in all sessions in turns, for about `seconds` in all.

    It ends earlier if only one session works, and later if few runs fit into the time. First runs
    do not count, because they are slow in every runtime. `clock` limits the time; `cpu` returns the
    processor time of the process.
    """
    _round(sessions, inputs, cpu)
    for each in sessions:
        each.seconds.clear()
    began, rounds = clock(), 0
    while sum(not each.fault for each in sessions) > 1 and (
        clock() < began + seconds * (_MAX_STRETCH if rounds < _MIN_ROUNDS else 1) or not rounds
    ):
        # the second session of a round profits from warm caches, so the order alternates
        _round(sessions if rounds % 2 else reversed(sessions), inputs, cpu)
        rounds += 1


def _round(sessions: Iterable[TimedSession], inputs: Inputs, cpu: Clock) -> None:
    for each in sessions:
        each.run(inputs, cpu)


def reason(error: Exception) -> str:
    """The text of an error, or its name if it has no text."""
    return str(error) or type(error).__name__


def clearly_fastest(seconds: Sequence[float], min_saving: float = MIN_SAVING) -> int:
    """Index of the session to use, by the median `seconds` of each.

    It is 0, unless the fastest session saves more than `min_saving` of the first one's time.
    """
    fastest = min(range(len(seconds)), key=seconds.__getitem__)
    return fastest if seconds[fastest] < (1 - min_saving) * seconds[0] else 0
