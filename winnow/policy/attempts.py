"""Decides what a caller does if others want the same result: wait, try or settle. Pure.

A flight is all attempts at one result, and all callers that wait for it. An attempt ends with a
complete result, an incomplete result, or an error. It belongs to the caller that began it: it has
the deadline and the turn of that caller. A waiting caller gets the outcome of every attempt that
ends. After each it takes one of three steps:

    SETTLE  with a complete result; or with the best result, if its own attempt has made one or no
            attempt can improve it
    WAIT    for an attempt that ends in time, may have what ended attempts lacked, and has no later
            turn than an attempt of this caller would have
    TRY     at most once, if no such attempt is running and its own attempt may have what the others
            lacked

The lack of an incomplete result or an error decides which attempt can do better:

    NOTHING  none: the same would happen again
    TIME     an attempt that has more time
    SHARE    an attempt of another client, which was not refused; or one that has more time
    ROOM     an attempt for which there is room now

An incomplete result is better than an error: no caller that got a result fails. After two clients
were refused, a third takes the incomplete result, if there is one. Otherwise it tries immediately,
and waits for no others.
"""

from collections.abc import Callable, Collection
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum, Flag, auto
from types import TracebackType
from typing import Any, Generic, TypeVar

from winnow.deadline import MAX_SECONDS, Deadline

_SLACK = 0.01
"""Seconds by which two deadlines may differ and still count as equal."""
_MAX_REFUSED_CLIENTS = 2
"""Number of refused clients after which other clients are expected to be refused, too."""
Result = TypeVar("Result")


class Lack(Flag):
    """The resources that an attempt had too little of."""

    NOTHING = 0
    TIME = auto()
    SHARE = auto()
    """The client of the attempt was refused; another client may be accepted."""
    ROOM = auto()
    """Less work was done than requested, because of the load."""


class NextStep(Enum):
    """The next step of a waiting caller."""

    SETTLE = auto()
    WAIT = auto()
    TRY = auto()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class FlightCaller:
    """A caller that wants a result."""

    deadline: Deadline = field(default_factory=lambda: Deadline.after(MAX_SECONDS))
    client: str = ""
    """Key of the client, for fair sharing."""
    work: int = 1
    """Amount of work of an attempt."""
    work_in_flight: Callable[[], int] = lambda: 0
    """Returns the unfinished work of the caller's client, which is done before the next attempt."""
    has_room_for_attempt: Callable[[], bool] = lambda: True
    """Whether there is room now for all work of an attempt."""


class FlightAttempt:
    """An attempt at a result, in the turn of the caller that began it."""

    def __init__(self, caller: FlightCaller) -> None:
        """Created when the attempt begins; call `record_start` when its work starts."""
        self.caller, self.seconds = caller, caller.deadline.left()
        """`seconds`: time until the deadline at the beginning."""
        self._work_ahead = 0

    def record_start(self) -> None:
        """Records that the attempt's work is queued now, behind the other work of its client."""
        self._work_ahead = self.caller.work_in_flight()

    @property
    def work_ahead(self) -> int:
        """Upper bound of the work of the same client that is done before this attempt."""
        return min(self._work_ahead, self.caller.work_in_flight() - self.caller.work)


@dataclass(frozen=True, slots=True, eq=False)
class EndedAttempt(Generic[Result]):
    """An attempt that ended with a result or an error."""

    attempt: FlightAttempt
    lack: Lack
    _: KW_ONLY
    result: Result | None = None
    worth: Any = 0
    """Worth of the result; a larger value is better."""
    error: BaseException | None = None
    """Why there is no result."""
    traceback: TracebackType | None = None
    """Traceback of the error, as the attempt raised it."""


class FlightWaiter(Generic[Result]):
    """A caller from its arrival until it settles."""

    def __init__(
        self, caller: FlightCaller, usable: Callable[[Result], bool] = lambda _: True
    ) -> None:
        """`usable`: whether a result that was made for another caller is acceptable."""
        self.caller, self._usable = caller, usable
        self.own_attempt: FlightAttempt | None = None
        """The attempt that this caller began."""
        self.best: EndedAttempt[Result] | None = None
        """The ended attempt with the best result so far."""
        self._ended: list[EndedAttempt[Result]] = []

    def record_end(self, ended: EndedAttempt[Result]) -> None:
        """Records an attempt that ended while the caller waits."""
        is_own = ended.attempt is self.own_attempt
        if ended.result is not None and not is_own and not self._usable(ended.result):
            return  # as if there had been no attempt
        self._ended.append(ended)
        if ended.result is not None and (self.best is None or _rank(ended) > _rank(self.best)):
            self.best = ended

    def next_step(self, running: Collection[FlightAttempt]) -> NextStep:
        """The next step, while these attempts are running."""
        if self.best is not None and (self.best.lack is Lack.NOTHING or self._own_has_result):
            return NextStep.SETTLE
        if any(map(self._waits_for, running)):
            return NextStep.WAIT
        if self.own_attempt is None and all(map(self._can_improve, self._ended)):
            return NextStep.TRY
        return NextStep.SETTLE

    @property
    def _own_has_result(self) -> bool:
        """Whether the caller's own attempt ended with a result, which the caller would take if it
        were alone.
        """
        return any(e.attempt is self.own_attempt and e.error is None for e in self._ended)

    def outcome(self) -> EndedAttempt[Result]:
        """The attempt that the caller settles with: the best result, or else its own error.

        Without an own attempt it is the error of another caller's attempt. Preferred is an error
        that an own attempt would have had, too; a refusal of another client comes last.
        """
        if self.best is not None:
            return self.best
        if own := [e for e in self._ended if e.attempt is self.own_attempt]:
            return own[0]
        return min(
            reversed(self._ended), key=lambda e: (self._refused_other(e), self._can_improve(e))
        )

    def _refused_other(self, ended: EndedAttempt[Result]) -> bool:
        """Whether another client was refused."""
        return Lack.SHARE in ended.lack and ended.attempt.caller.client != self.caller.client

    def _waits_for(self, attempt: FlightAttempt) -> bool:
        if attempt is self.own_attempt:
            return self.best is None or self._may_improve(attempt)
        if attempt.caller.deadline.at > self.caller.deadline.at + _SLACK:
            return False
        if self.own_attempt is not None and self.best is None:
            return True
        many_refused = len(self._refused_clients()) >= _MAX_REFUSED_CLIENTS
        if many_refused and self.own_attempt is None:
            return False
        return not self._comes_before(attempt) and self._may_improve(attempt)

    def _comes_before(self, attempt: FlightAttempt) -> bool:
        """Whether an attempt of this caller would clearly have its turn earlier."""
        caller = self.caller
        if self.own_attempt is not None or caller.client == attempt.caller.client:
            return False
        return caller.work_in_flight() + caller.work <= attempt.work_ahead

    def _may_improve(self, attempt: FlightAttempt) -> bool:
        """Whether a running attempt may have what every ended one lacked."""
        caller, seconds = attempt.caller, attempt.seconds
        return all(self._may_have(e, caller, seconds, lambda: True) for e in self._ended)

    def _can_improve(self, ended: EndedAttempt[Result]) -> bool:
        """Whether an attempt of this caller, begun now, may have what an ended one lacked."""
        caller = self.caller
        return self._may_have(ended, caller, caller.deadline.left(), caller.has_room_for_attempt)

    def _may_have(
        self,
        ended: EndedAttempt[Result],
        caller: FlightCaller,
        seconds: float,
        has_room: Callable[[], bool],
    ) -> bool:
        """Whether an attempt of `caller` with `seconds` of time may have what `ended` lacked."""
        if Lack.SHARE in ended.lack and self._was_not_refused(caller, seconds):
            return True
        if Lack.ROOM in ended.lack and has_room():
            return True
        lacks_time = bool(ended.lack & (Lack.TIME | Lack.SHARE))
        return lacks_time and seconds > ended.attempt.seconds + _SLACK

    def _was_not_refused(self, caller: FlightCaller, seconds: float) -> bool:
        """Whether the client was not refused yet with as much time."""
        if self.best is not None and len(self._refused_clients()) >= _MAX_REFUSED_CLIENTS:
            return False
        return caller.client not in {
            e.attempt.caller.client
            for e in self._ended
            if Lack.SHARE in e.lack and seconds <= e.attempt.seconds + _SLACK
        }

    def _refused_clients(self) -> set[str]:
        return {e.attempt.caller.client for e in self._ended if Lack.SHARE in e.lack}


def _rank(ended: EndedAttempt[Any]) -> tuple[bool, Any]:
    """Sort key of results: a complete result is better than any other."""
    return ended.lack is Lack.NOTHING, ended.worth
