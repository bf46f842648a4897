"""Decides what an asker does if others want the same result: wait, try or settle. Pure.

A flight is all attempts at one result, and all askers that wait for it. An attempt flies until it
ends with a whole result, with a poor one, or with a failure. It belongs to the asker that began it:
it has that asker's deadline and that asker's turn. An asker is told of every attempt that ends
while it waits. After each it takes one of three steps:

    SETTLE  with a whole result; or with the best that there is once its own attempt has made one,
            or nothing can mend it
    WAIT    for an attempt that ends in time, may mend what others lacked, and has no worse turn
    TRY     once at most, where no such attempt flies and an own one may mend what others lacked

What a poor result or a failure lacked says who can mend it:

    NOTHING  nobody: asking again would give the same
    TIME     an attempt that has more time
    SHARE    an attempt of a client that was not refused, or one that has more time
    ROOM     an attempt for which there is room now

A poor result is better than a failure: no asker that was told of a result fails. After two clients
were refused, a third takes the poor result, if there is one; else it tries at once, and waits for
no others.
"""

from collections.abc import Callable, Collection
from dataclasses import KW_ONLY, dataclass, field
from enum import Enum, Flag, auto
from types import TracebackType
from typing import Any, Generic, TypeVar

from winnow.deadline import LONGEST, Deadline

_SLACK = 0.01
"""Seconds by which two deadlines may differ and count as equal."""
_REFUSED = 2
"""Number of refused clients after which other clients are expected to be refused, too."""
Result = TypeVar("Result")


class Lack(Flag):
    """The resources that an attempt had too little of."""

    NOTHING = 0
    TIME = auto()
    SHARE = auto()
    """Its client was refused; another one may not be."""
    ROOM = auto()
    """Less was done than asked for, since there was much to do."""


class NextStep(Enum):
    """What an asker does next."""

    SETTLE = auto()
    WAIT = auto()
    TRY = auto()


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Asker:
    """A caller that wants a result."""

    deadline: Deadline = field(default_factory=lambda: Deadline.after(LONGEST))
    client: str = ""
    """Key of the client, for fair sharing."""
    work: int = 1
    """Amount of work of an attempt."""
    in_hand: Callable[[], int] = lambda: 0
    """Amount of work in hand for its client; the next attempt comes after that."""
    room: Callable[[], bool] = lambda: True
    """Whether there is room now for all work of an attempt."""


class FlightAttempt:
    """An attempt at a result, in the turn of the asker that began it."""

    def __init__(self, asker: Asker) -> None:
        """Begins now; `starts` is called when its work starts."""
        self.asker, self.seconds = asker, asker.deadline.left()
        self._before = 0

    def starts(self) -> None:
        """Notes that its work is put in hand now, behind the other work of its client."""
        self._before = self.asker.in_hand()

    @property
    def before(self) -> int:
        """Most work that is still done for its client before it."""
        return min(self._before, self.asker.in_hand() - self.asker.work)


@dataclass(frozen=True, slots=True, eq=False)
class AttemptEnded(Generic[Result]):
    """An attempt that ended."""

    attempt: FlightAttempt
    lack: Lack
    _: KW_ONLY
    result: Result | None = None
    worth: Any = 0
    """Worth of the result: more is better."""
    error: BaseException | None = None
    """Why there is no result."""
    traceback: TracebackType | None = None
    """Traceback of the error, as the attempt raised it."""


class Waiting(Generic[Result]):
    """An asker, from its arrival until it settles."""

    def __init__(self, asker: Asker, usable: Callable[[Result], bool] = lambda _: True) -> None:
        """`usable`: whether a result that was made for another asker is acceptable."""
        self.asker, self._usable = asker, usable
        self.own: FlightAttempt | None = None
        """The attempt that it began."""
        self.best: AttemptEnded[Result] | None = None
        """The best result that it was told of."""
        self._told: list[AttemptEnded[Result]] = []

    def tell(self, ended: AttemptEnded[Result]) -> None:
        """Notes that an attempt ended."""
        self._told.append(ended)
        if ended.result is None:
            return
        if ended.attempt is not self.own and not self._usable(ended.result):
            self._told.pop()  # as if there had been no attempt
        elif self.best is None or _rank(ended) > _rank(self.best):
            self.best = ended

    def step(self, flying: Collection[FlightAttempt]) -> NextStep:
        """The next step, while these attempts fly."""
        if self.best is not None and (self.best.lack is Lack.NOTHING or self._tried):
            return NextStep.SETTLE
        if any(map(self._waits_for, flying)):
            return NextStep.WAIT
        if self.own is None and all(map(self._mended, self._told)):
            return NextStep.TRY
        return NextStep.SETTLE

    @property
    def _tried(self) -> bool:
        """Whether its own attempt ended with a result, which it would take if it were alone."""
        return any(each.attempt is self.own and each.error is None for each in self._told)

    def outcome(self) -> AttemptEnded[Result]:
        """The attempt that it settles with: the best result, or else its own failure.

        Without an own attempt it is another's failure: best one that it could not have mended, and
        no refusal of another client.
        """
        if self.best is not None:
            return self.best
        if own := [each for each in self._told if each.attempt is self.own]:
            return own[0]
        return min(reversed(self._told), key=lambda each: (self._others(each), self._mended(each)))

    def _others(self, each: AttemptEnded[Result]) -> bool:
        """Whether another client was refused."""
        return Lack.SHARE in each.lack and each.attempt.asker.client != self.asker.client

    def _waits_for(self, attempt: FlightAttempt) -> bool:
        if attempt is self.own:
            return self.best is None or self._mends(attempt)
        if attempt.asker.deadline.at > self.asker.deadline.at + _SLACK:
            return False
        if self.own is not None and self.best is None:
            return True
        crowded = len(self._refused()) >= _REFUSED and self.own is None
        return not crowded and not self._comes_before(attempt) and self._mends(attempt)

    def _comes_before(self, attempt: FlightAttempt) -> bool:
        """Whether an attempt of this asker would clearly have its turn earlier."""
        asker = self.asker
        if self.own is not None or asker.client == attempt.asker.client:
            return False
        return asker.in_hand() + asker.work <= attempt.before

    def _mends(self, attempt: FlightAttempt) -> bool:
        """Whether an attempt may have what every ended one lacked."""
        asker, seconds = attempt.asker, attempt.seconds
        return all(self._may_mend(each, asker, seconds, lambda: True) for each in self._told)

    def _mended(self, each: AttemptEnded[Result]) -> bool:
        """Whether an attempt of this asker, begun now, may have what this one lacked."""
        return self._may_mend(each, self.asker, self.asker.deadline.left(), self.asker.room)

    def _may_mend(
        self, each: AttemptEnded[Result], asker: Asker, seconds: float, room: Callable[[], bool]
    ) -> bool:
        if Lack.SHARE in each.lack and self._is_fresh(asker, seconds):
            return True
        if Lack.ROOM in each.lack and room():
            return True
        lacks_time = bool(each.lack & (Lack.TIME | Lack.SHARE))
        return lacks_time and seconds > each.attempt.seconds + _SLACK

    def _is_fresh(self, asker: Asker, seconds: float) -> bool:
        """Whether the client was not refused while it had as much time."""
        if self.best is not None and len(self._refused()) >= _REFUSED:
            return False
        return asker.client not in {
            each.attempt.asker.client
            for each in self._told
            if Lack.SHARE in each.lack and seconds <= each.attempt.seconds + _SLACK
        }

    def _refused(self) -> set[str]:
        return {each.attempt.asker.client for each in self._told if Lack.SHARE in each.lack}


def _rank(ended: AttemptEnded[Any]) -> tuple[bool, Any]:
    """A whole result is better than any other."""
    return ended.lack is Lack.NOTHING, ended.worth
