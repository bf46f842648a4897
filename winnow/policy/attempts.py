"""Decides what a caller does if other callers want the same result: wait, try or settle. Pure.

A flight is the set of attempts to compute one result, and of callers that wait for it. An attempt
ends with a complete result, an incomplete result, or an error. It has the deadline and the turn of
the caller that began it. A waiting caller is told the outcome of every attempt that ends. After
each outcome it takes one of three steps:

    SETTLE  with a complete result; or with the best incomplete one, if its own attempt returned a
            result or no attempt can improve on it
    WAIT    for an attempt that ends in time, may have what the ended attempts lacked, and gets its
            turn no later than an attempt of this caller would
    TRY     at most once, if no such attempt is running and an own attempt may have what the ended
            attempts lacked

What an attempt lacked determines which attempts can do better:

    NOTHING  none: another attempt would end in the same way
    TIME     an attempt with more time
    SHARE    an attempt of a client that was not refused; or an attempt with more time
    ROOM     an attempt for which there is room now

An incomplete result is better than an error: a caller that got any result does not fail. After two
clients were refused, a third client takes the incomplete result if there is one. Without a result,
it tries immediately and does not wait for other callers.
"""

from collections.abc import Callable, Collection
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum, Flag, auto
from types import TracebackType
from typing import Any, Generic, TypeVar

from winnow.deadline import MAX_SECONDS, Deadline

_SLACK = 0.01
"""Maximum difference, in seconds, between deadlines that count as equal."""
_MAX_REFUSED_CLIENTS = 2
"""Number of refused clients after which further clients are expected to be refused, too."""
Result = TypeVar("Result")


class Lack(Flag):
    """The resources that an attempt had too little of."""

    NOTHING = 0
    TIME = auto()
    SHARE = auto()
    """The client of the attempt was refused; another client may be admitted."""
    ROOM = auto()
    """Less work was done than requested, because of the load."""


class NextStep(Enum):
    """The next step of a waiting caller."""

    SETTLE = auto()
    WAIT = auto()
    TRY = auto()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SingleFlightCaller:
    """A caller that shares one computation, the flight, with the other callers of its key."""

    deadline: Deadline = field(default_factory=lambda: Deadline.after(MAX_SECONDS))
    client: str = ""
    """Key of the client, for fair sharing."""
    work: int = 1
    """Amount of work that an attempt takes."""
    work_in_flight: Callable[[], int] = lambda: 0
    """Returns the unfinished work of the caller's client, which precedes its next attempt."""
    has_room_for_attempt: Callable[[], bool] = lambda: True
    """Returns whether there is room now for the whole work of an attempt."""


class FlightAttempt:
    """An attempt to compute the result, in the turn of the caller that began it."""

    def __init__(self, caller: SingleFlightCaller) -> None:
        """Begins an attempt; call `record_start` when its work starts."""
        self.caller, self.seconds = caller, caller.deadline.left()
        """`seconds`: time between the beginning of the attempt and its deadline."""
        self._work_ahead = 0

    def record_start(self) -> None:
        """Records that the attempt's work is now queued, behind the other work of its client."""
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
    """Quality of an incomplete result; a larger value is better."""
    error: BaseException | None = None
    """The error of the attempt; None if it ended with a result."""
    traceback: TracebackType | None = None
    """Traceback of the error at the time when the attempt raised it."""


class FlightWaiter(Generic[Result]):
    """The state of a caller from its arrival until it settles."""

    def __init__(
        self, caller: SingleFlightCaller, usable: Callable[[Result], bool] = lambda _: True
    ) -> None:
        """`usable`: returns whether this caller accepts a result of another caller's attempt."""
        self.caller, self._usable = caller, usable
        self.own_attempt: FlightAttempt | None = None
        """The attempt that this caller began."""
        self.best: EndedAttempt[Result] | None = None
        """The ended attempt with the best result so far."""
        self._ended: list[EndedAttempt[Result]] = []

    def record_end(self, ended: EndedAttempt[Result]) -> None:
        """Records an attempt that ended while this caller was waiting."""
        is_own = ended.attempt is self.own_attempt
        if ended.result is not None and not is_own and not self._usable(ended.result):
            return  # ignored, as if there had been no attempt
        self._ended.append(ended)
        if ended.result is not None and (self.best is None or _rank(ended) > _rank(self.best)):
            self.best = ended

    def next_step(self, running: Collection[FlightAttempt]) -> NextStep:
        """Returns the next step, given the running attempts."""
        if self.best is not None and (self.best.lack is Lack.NOTHING or self._own_has_result):
            return NextStep.SETTLE
        if any(map(self._waits_for, running)):
            return NextStep.WAIT
        if self.own_attempt is None and all(map(self._can_improve, self._ended)):
            return NextStep.TRY
        return NextStep.SETTLE

    @property
    def _own_has_result(self) -> bool:
        """Whether the caller's own attempt ended with a result, even an incomplete one."""
        return any(e.attempt is self.own_attempt and e.error is None for e in self._ended)

    def outcome(self) -> EndedAttempt[Result]:
        """Returns the attempt whose outcome this caller gets.

        This is the attempt with the best result. If no attempt has a result, it is the caller's own
        failed attempt, or else a failed attempt of another caller. Among those, errors that do not
        depend on the caller come first, and refusals of the other client come last.
        """
        if self.best is not None:
            return self.best
        if own := [e for e in self._ended if e.attempt is self.own_attempt]:
            return own[0]
        return min(
            reversed(self._ended), key=lambda e: (self._refused_other(e), self._can_improve(e))
        )

    def _refused_other(self, ended: EndedAttempt[Result]) -> bool:
        """Whether the attempt ended with a refusal of another client."""
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
        """Whether an attempt of this caller would clearly get its turn before a running attempt."""
        caller = self.caller
        if self.own_attempt is not None or caller.client == attempt.caller.client:
            return False
        return caller.work_in_flight() + caller.work <= attempt.work_ahead

    def _may_improve(self, attempt: FlightAttempt) -> bool:
        """Whether a running attempt may have, for each ended attempt, what that attempt lacked."""
        caller, seconds = attempt.caller, attempt.seconds
        return all(self._may_have(e, caller, seconds, lambda: True) for e in self._ended)

    def _can_improve(self, ended: EndedAttempt[Result]) -> bool:
        """Whether an attempt of this caller, begun now, may have what an ended attempt lacked."""
        caller = self.caller
        return self._may_have(ended, caller, caller.deadline.left(), caller.has_room_for_attempt)

    def _may_have(
        self,
        ended: EndedAttempt[Result],
        caller: SingleFlightCaller,
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

    def _was_not_refused(self, caller: SingleFlightCaller, seconds: float) -> bool:
        """Whether the client was not refused yet, or only with less time."""
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
    """Sort key of results, best last: a complete result is better than any incomplete one."""
    return ended.lack is Lack.NOTHING, ended.worth
