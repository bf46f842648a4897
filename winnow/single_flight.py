"""Does work once that several askers want at the same time.

Knows tasks and the askers that wait for them; `winnow.policy.attempts` says which one waits, tries
or settles. Knows neither what the result is nor whether it is kept afterwards.
"""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, TypeVar

from winnow.policy.attempts import (
    EndedAttempt,
    FlightAttempt,
    FlightCaller,
    FlightWaiter,
    Lack,
    NextStep,
)

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")
Work = Callable[[], Coroutine[Any, Any, Result]]
Judge = Callable[[Result], tuple[Lack, Any]]
"""Tells what a result lacks, and its worth: more is better."""
LackOfError = Callable[[BaseException], Lack]
"""Tells what a failed attempt lacked."""


@dataclass(frozen=True, slots=True)
class SharedResult(Generic[Result]):
    """A result, as an asker gets it."""

    result: Result
    own: bool
    """Whether the asker's own attempt made it."""


class SingleFlight(Generic[Key, Result]):
    """The flights in hand, by key; an asker that comes after a flight's end begins a new one."""

    def __init__(
        self,
        judge: Judge[Result] = lambda _: (Lack.NOTHING, 0),
        lack_of_error: LackOfError = lambda _: Lack.NOTHING,
        joining: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        """`joining` is the context in which an asker waits that has begun no attempt."""
        self._judge, self._lack_of_error, self._joining = judge, lack_of_error, joining
        self._flights: dict[Key, _Flight[Result]] = {}
        self.waiting = 0
        """Number of askers."""

    def __contains__(self, key: Key) -> bool:
        """Whether an asker waits for this key."""
        return key in self._flights

    async def ask(
        self,
        key: Key,
        work: Work[Result],
        asker: FlightCaller | None = None,
        usable: Callable[[Result], bool] = lambda _: True,
    ) -> SharedResult[Result]:
        """The result of an attempt of another asker, or of an own one.

        An asker that is cancelled takes nothing from the others; the last one ends all attempts.

        Args:
            key: name of the result.
            work: makes an attempt of this asker; may raise any error.
            asker: how long it waits, and in which client's turn it tries.
            usable: whether a result of another asker is acceptable.

        Raises:
            What an attempt raised, if there is no result: the asker's own, if it made one.

        """
        flight = self._flights.setdefault(key, _Flight(self._judge, self._lack_of_error))
        waiting = FlightWaiter[Result](asker or FlightCaller(), usable)
        told = flight.join(waiting)
        self.waiting += 1
        try:
            while (step := waiting.next_step(flight.running)) is not NextStep.SETTLE:
                told.clear()
                if step is NextStep.TRY:
                    waiting.own_attempt = flight.begin(waiting.caller, work)
                with nullcontext() if waiting.own_attempt else self._joining():
                    await told.wait()
        finally:
            self.waiting -= 1
            if flight.leave(waiting) and self._flights.get(key) is flight:
                del self._flights[key]
        return _shared_result(waiting)

    def cancel(self) -> None:
        """Cancels all attempts, and so the waiting askers."""
        for flight in list(self._flights.values()):
            flight.cancel()


class _Flight(Generic[Result]):
    """The attempts at one result, and the askers that wait for it."""

    def __init__(self, judge: Judge[Result], lack_of_error: LackOfError) -> None:
        self._judge, self._lack_of_error = judge, lack_of_error
        self.running: dict[FlightAttempt, asyncio.Task[Result]] = {}
        self._askers: dict[FlightWaiter[Result], asyncio.Event] = {}

    def join(self, waiting: FlightWaiter[Result]) -> asyncio.Event:
        """Adds an asker; it is told of each attempt that ends from now on, and the event is set."""
        self._askers[waiting] = asyncio.Event()
        return self._askers[waiting]

    def leave(self, waiting: FlightWaiter[Result]) -> bool:
        """Removes an asker; True if it was the last one: then all attempts are cancelled."""
        del self._askers[waiting]
        if not self._askers:
            self.cancel()
        return not self._askers

    def begin(self, asker: FlightCaller, work: Work[Result]) -> FlightAttempt:
        """Begins an attempt."""
        attempt = FlightAttempt(asker)
        self.running[attempt] = asyncio.create_task(_make(attempt, work))
        self.running[attempt].add_done_callback(partial(self._done, attempt))
        return attempt

    def cancel(self) -> None:
        """Cancels all attempts."""
        for task in self.running.values():
            task.cancel()

    def _done(self, attempt: FlightAttempt, task: "asyncio.Task[Result]") -> None:
        del self.running[attempt]
        ended = self._ended(attempt, task)
        for waiting, told in self._askers.items():
            waiting.record_end(ended)
            told.set()

    def _ended(self, attempt: FlightAttempt, task: "asyncio.Task[Result]") -> EndedAttempt[Result]:
        if task.cancelled():
            return EndedAttempt(attempt, Lack.NOTHING, error=asyncio.CancelledError())
        if (error := task.exception()) is not None:
            traceback = error.__traceback__
            return EndedAttempt(
                attempt, self._lack_of_error(error), error=error, traceback=traceback
            )
        lack, worth = self._judge(task.result())
        return EndedAttempt(attempt, lack, result=task.result(), worth=worth)


async def _make(attempt: FlightAttempt, work: Work[Result]) -> Result:
    attempt.record_start()
    return await work()


def _shared_result(waiting: FlightWaiter[Result]) -> SharedResult[Result]:
    outcome = waiting.outcome()
    if outcome.error is not None:
        # without this it would collect the frames of every asker, and a log would have them all
        raise outcome.error.with_traceback(outcome.traceback)
    assert outcome.result is not None
    return SharedResult(outcome.result, outcome.attempt is waiting.own_attempt)
