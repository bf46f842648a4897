"""Chooses which of the runtimes that can run a model runs it: the fastest one on this machine.

Processors differ in more than their flags say, so each runtime is tried; all together take about a
second. Knows names and how to open a session; does not know the runtimes.
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
from winnow.heap import give_back
from winnow.inference.runtime_timer import MARGIN, Timed, clearly_fastest, reason, run_in_turns
from winnow.inference.session import Inputs, Session

_one = threading.Lock()
_STDERR = 2
"""The file descriptor: `sys.stderr` may have been replaced by an object without one."""


@contextmanager
def ends_process_after(seconds: float) -> Iterator[None]:
    """Ends the process with exit code 1 if the block takes longer than `seconds`, and writes the
    stack of each thread to the standard error.

    A native library that hangs may keep the interpreter: then neither a timer in Python nor a
    handler of SIGTERM runs. A process has one such timer, so other threads wait for their turn.
    """
    with _one:
        faulthandler.dump_traceback_later(seconds, exit=True, file=_STDERR)
        try:
            yield
        finally:
            faulthandler.cancel_dump_traceback_later()


Open = Callable[[], Session]
_SECONDS = 1.0
_LIMIT = 120.0
"""Seconds. Large models take long to open from a slow disk, and their first runs, too."""
_HINT = "if nothing follows, one of them hangs: name the other by --runtime"
_log = structlog.get_logger("winnow.runtimes")


class ChosenBy(str, Enum):
    """The reason of a choice."""

    SETTING = "setting"
    """The runtime was named."""
    ONLY = "only"
    """No other runtime can run the model."""
    FLAGS = "flags"
    """The processor's flags decided."""
    MEASURED = "measured"


@dataclass(frozen=True, slots=True)
class Choice:
    """The runtime that runs a model, and why."""

    model: str
    """The name of its file."""
    runtime: str
    by: ChosenBy
    _: KW_ONLY
    milliseconds: Mapping[str, float] = field(default_factory=dict)
    """Median processor time of a run, by runtime; empty if nothing was measured."""
    faults: Mapping[str, str] = field(default_factory=dict)
    """Why the runtimes that failed cannot run the model."""

    @property
    def why(self) -> str:
        """The reason, for people."""
        if self.by is not ChosenBy.MEASURED:
            return "; ".join(f"{name} cannot run it: {why}" for name, why in self.faults.items())
        first = next(iter(self.milliseconds))
        if self.runtime == first:
            return f"first by the processor's flags, and no other saves {MARGIN:.0%} of its time"
        share = self.milliseconds[self.runtime] / self.milliseconds[first]
        return f"takes {share:.0%} of the time of {first}, which is first by the processor's flags"


class Choosing:
    """Opens models in the fastest runtime, and reports each choice."""

    def __init__(
        self,
        told: Callable[[Choice], None],
        *,
        seconds: float = _SECONDS,
        clock: Clock = time.perf_counter,
        cpu: Clock = time.process_time,
        limit: float = _LIMIT,
    ) -> None:
        """`told` is called after every choice; `seconds`: time to compare the runtimes of a
        model; `cpu`: processor time of the process; `limit`: seconds after which a runtime counts
        as hanging.
        """
        self._limit = limit
        self._told, self._seconds, self._clock, self._cpu = told, seconds, clock, cpu

    def set(self, model: str, runtime: str, by: ChosenBy) -> None:
        """Reports a choice for which nothing was measured."""
        self._told(Choice(model, runtime, by))

    def open(self, model: str, runtimes: Mapping[str, Open], inputs: Inputs) -> Session:
        """Opens the model in each of `runtimes`, keeps one session and closes the others.

        `runtimes` has at least two, the preferred one first. A runtime that cannot open the model,
        or cannot run the made-up `inputs`, is left out. If none runs them, the first that opened
        the model is taken. If a runtime hangs, the process ends after two minutes, so that its
        supervisor restarts it.

        Raises:
            ArtefactError: no runtime can open it.

        """
        _log.info("trying runtimes", model=model, runtimes=list(runtimes), hint=_HINT)
        with ends_process_after(self._limit):
            tried, faults = _opened(runtimes)
            if len(tried) > 1:
                run_in_turns(tried, inputs, self._seconds, self._clock, self._cpu)
        taken, choice = _taken(model, tried, faults)
        session = taken.session
        del tried, taken
        give_back()  # closed sessions leave as much free memory as a model takes
        self._told(choice)
        return session


def _opened(runtimes: Mapping[str, Open]) -> tuple[list[Timed], dict[str, str]]:
    opened: list[Timed] = []
    faults: dict[str, str] = {}
    for number, (name, open_) in enumerate(runtimes.items(), 1):
        try:
            opened.append(Timed(name, open_()))
        except Exception as error:  # an extra may be broken in any way
            if number == len(runtimes) and not opened:
                raise
            # not the error itself, whose frames would keep a half-open session
            faults[name] = reason(error)
    return opened, faults


def _taken(model: str, tried: list[Timed], faults: Mapping[str, str]) -> tuple[Timed, Choice]:
    faults = {**faults, **{each.name: each.fault for each in tried if each.fault}}
    match [each for each in tried if not each.fault]:
        case []:  # the made-up input is one that the model does not take
            return tried[0], Choice(model, tried[0].name, ChosenBy.FLAGS, faults=faults)
        case [only]:
            return only, Choice(model, only.name, ChosenBy.ONLY, faults=faults)
        case able:
            usual = [median(each.seconds) for each in able]
            spent = {each.name: round(1e3 * own, 3) for each, own in zip(able, usual, strict=True)}
            taken = able[clearly_fastest(usual)]
            return taken, Choice(
                model, taken.name, ChosenBy.MEASURED, milliseconds=spent, faults=faults
            )
