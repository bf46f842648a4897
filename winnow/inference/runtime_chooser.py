"""Chooses the fastest runtime for a model on this machine.

The processor's flags do not tell which runtime is fastest, so each runtime is timed. Timing takes
about a second in total. Knows the runtimes only by name and by a function that opens a session.
"""

import faulthandler
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum
from statistics import median

import structlog

from winnow.deadline import Clock
from winnow.heap import trim_heap
from winnow.inference.runtime_timer import (
    MIN_SAVING,
    TimedSession,
    clearly_fastest,
    reason,
    run_in_turns,
)
from winnow.inference.session import Inputs, Session

_exit_timer = threading.Lock()
_STDERR = 2
"""File descriptor of standard error; a replaced `sys.stderr` may have none."""


@contextmanager
def exit_if_hanging(seconds: float) -> Iterator[None]:
    """Ends the process with exit code 1 if the block takes longer than `seconds`.

    Writes the stack of each thread to standard error. The timer also works if a hanging native
    library holds the interpreter lock, unlike a Python timer or a SIGTERM handler. A process has
    only one such timer, so other threads wait for it.
    """
    with _exit_timer:
        faulthandler.dump_traceback_later(seconds, exit=True, file=_STDERR)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()


OpenSession = Callable[[], Session]
_TRIAL_SECONDS = 1.0
_HANG_SECONDS = 120.0
"""Seconds until a runtime counts as hanging. A large model on a slow disk opens slowly."""
_HINT = "if no further line is logged, a runtime hangs: choose another one with --runtime"
_log = structlog.get_logger("winnow.runtimes")


class ChosenBy(str, Enum):
    """What decided the choice of a runtime."""

    SETTING = "setting"
    """A setting names the runtime."""
    ONLY = "only"
    """No other runtime can run the model."""
    FLAGS = "flags"
    """The processor's flags decided."""
    MEASURED = "measured"
    """The runtimes were timed."""


@dataclass(frozen=True, slots=True)
class RuntimeChoice:
    """The chosen runtime of a model, and why it was chosen."""

    model: str
    """The name of the model's file."""
    runtime: str
    by: ChosenBy
    """What decided the choice."""
    _: KW_ONLY
    milliseconds: Mapping[str, float] = field(default_factory=dict)
    """Median processor time of a run in milliseconds, by runtime; empty without measurements."""
    faults: Mapping[str, str] = field(default_factory=dict)
    """Error of each runtime that cannot run the model, by runtime."""

    @property
    def why(self) -> str:
        """The reason for the choice, for the log; empty if there was nothing to choose."""
        if self.by is not ChosenBy.MEASURED:
            return "; ".join(f"{name} cannot run it: {why}" for name, why in self.faults.items())
        first = next(iter(self.milliseconds))
        if self.runtime == first:
            return (
                f"preferred by the processor's flags; no other saves {MIN_SAVING:.0%} of its time"
            )
        share = self.milliseconds[self.runtime] / self.milliseconds[first]
        return f"takes {share:.0%} of the time of {first}, which the processor's flags prefer"


class RuntimeChooser:
    """Opens models in the fastest runtime, and reports each choice."""

    def __init__(
        self,
        on_choice: Callable[[RuntimeChoice], None],
        *,
        seconds: float = _TRIAL_SECONDS,
        clock: Clock = time.perf_counter,
        cpu: Clock = time.process_time,
        hang_seconds: float = _HANG_SECONDS,
    ) -> None:
        """`on_choice`: called after every choice. `seconds`: time for comparing the runtimes of a
        model. `cpu`: returns the processor time of the process. `hang_seconds`: time after which a
        runtime counts as hanging.
        """
        self._hang_seconds = hang_seconds
        self._on_choice, self._seconds, self._clock, self._cpu = on_choice, seconds, clock, cpu

    def report(self, model: str, runtime: str, by: ChosenBy) -> None:
        """Reports a choice that was made without measuring."""
        self._on_choice(RuntimeChoice(model, runtime, by))

    def open(self, model: str, runtimes: Mapping[str, OpenSession], inputs: Inputs) -> Session:
        """Opens the model in each of `runtimes`, keeps the best session and closes the others.

        `runtimes` has at least two entries, the preferred runtime first. A runtime that cannot open
        the model, or cannot run the made-up `inputs`, is left out. If no runtime can run them, the
        first one that opened the model is used. If a runtime hangs, the process ends after
        `hang_seconds`, so that its supervisor restarts it.

        Raises:
            ArtefactError: no runtime can open the model.

        """
        _log.info("trying runtimes", model=model, runtimes=list(runtimes), hint=_HINT)
        with exit_if_hanging(self._hang_seconds):
            timed, faults = _open_all(runtimes)
            if len(timed) > 1:
                run_in_turns(timed, inputs, self._seconds, self._clock, self._cpu)
        fastest, choice = _choose(model, timed, faults)
        session = fastest.session
        del timed, fastest
        trim_heap()  # closed sessions leave as much free memory as a model takes
        self._on_choice(choice)
        return session


def _open_all(runtimes: Mapping[str, OpenSession]) -> tuple[list[TimedSession], dict[str, str]]:
    timed: list[TimedSession] = []
    faults: dict[str, str] = {}
    for number, (name, open_) in enumerate(runtimes.items(), 1):
        try:
            timed.append(TimedSession(name, open_()))
        except Exception as error:  # an extra may be broken in any way
            if number == len(runtimes) and not timed:
                raise
            # only the text: the frames of the error would keep a half-open session in memory
            faults[name] = reason(error)
    return timed, faults


def _choose(
    model: str, timed: list[TimedSession], faults: Mapping[str, str]
) -> tuple[TimedSession, RuntimeChoice]:
    faults = {**faults, **{each.name: each.fault for each in timed if each.fault}}
    match [each for each in timed if not each.fault]:
        case []:  # no runtime could run the made-up inputs
            return timed[0], RuntimeChoice(model, timed[0].name, ChosenBy.FLAGS, faults=faults)
        case [only]:
            return only, RuntimeChoice(model, only.name, ChosenBy.ONLY, faults=faults)
        case usable:
            medians = [median(each.seconds) for each in usable]
            milliseconds = {
                each.name: round(1e3 * own, 3) for each, own in zip(usable, medians, strict=True)
            }
            fastest = usable[clearly_fastest(medians)]
            return fastest, RuntimeChoice(
                model, fastest.name, ChosenBy.MEASURED, milliseconds=milliseconds, faults=faults
            )
