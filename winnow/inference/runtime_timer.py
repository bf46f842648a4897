"""Compares the speed of several sessions, which run the same input in turns.

The comparison is of processor time. On a busy machine, elapsed time would favour runtimes that run
in the calling thread, because other threads wait longer for the processor.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from winnow.deadline import Clock
from winnow.inference.session import Inputs, Session

MIN_SAVING = 0.1
"""Share of the first session's time that another session must save; larger than the noise."""
_MIN_ROUNDS = 3
"""Minimum number of rounds, even for slow models, because a median of fewer is noise."""
_MAX_STRETCH = 10
"""Multiple of the requested time after which one round is enough, because startup waits."""


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
        except Exception as error:  # noqa: BLE001 (runtimes raise unrelated types)
            self.fault = reason(error)
        else:
            self.seconds.append(cpu() - began)


def run_in_turns(
    sessions: Sequence[TimedSession], inputs: Inputs, seconds: float, clock: Clock, cpu: Clock
) -> None:
    """Runs `inputs` in all sessions in turns, for about `seconds` in total.

    Ends earlier if only one session works, and later if only few rounds fit into the time. The
    first run of each session does not count, because it is slow in every runtime. `clock` limits
    the time; `cpu` returns the processor time of the process.
    """
    _run_round(sessions, inputs, cpu)
    for each in sessions:
        each.seconds.clear()
    began, rounds = clock(), 0
    while sum(not each.fault for each in sessions) > 1 and (
        clock() < began + seconds * (_MAX_STRETCH if rounds < _MIN_ROUNDS else 1) or not rounds
    ):
        # later sessions of a round profit from warm caches, so the order alternates
        _run_round(sessions if rounds % 2 else reversed(sessions), inputs, cpu)
        rounds += 1


def _run_round(sessions: Iterable[TimedSession], inputs: Inputs, cpu: Clock) -> None:
    for each in sessions:
        each.run(inputs, cpu)


def reason(error: Exception) -> str:
    """Returns the text of an error, or the name of its type if it has no text."""
    return str(error) or type(error).__name__


def clearly_fastest(seconds: Sequence[float], min_saving: float = MIN_SAVING) -> int:
    """Returns the index of the session to use, given the median `seconds` of each.

    Returns 0 unless the fastest session saves more than `min_saving` of the first session's time.
    """
    fastest = min(range(len(seconds)), key=seconds.__getitem__)
    return fastest if seconds[fastest] < (1 - min_saving) * seconds[0] else 0
