"""Shares the work of equal concurrent requests.

Runs attempts as tasks, and wakes the callers that wait for them. `winnow.policy.attempts` decides
which callers wait, try or settle. Does not cache results.
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
    FlightWaiter,
    Lack,
    NextStep,
    SingleFlightCaller,
)

Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")
Work = Callable[[], Coroutine[Any, Any, Result]]
Judge = Callable[[Result], tuple[Lack, Any]]
"""Returns what a result lacks, and its quality; a larger value is better."""
LackOfError = Callable[[BaseException], Lack]
"""Returns what a failed attempt lacked."""


@dataclass(frozen=True, slots=True)
class SharedResult(Generic[Result]):
    """A result that a caller receives."""

    result: Result
    own: bool
    """Whether the result is from the caller's own attempt."""


class SingleFlight(Generic[Key, Result]):
    """The flights, by key. A flight is the shared work for one key, while callers wait for it."""

    def __init__(
        self,
        judge: Judge[Result] = lambda _: (Lack.NOTHING, 0),
        lack_of_error: LackOfError = lambda _: Lack.NOTHING,
        joining: Callable[[], AbstractContextManager[Any]] = nullcontext,
    ) -> None:
        """Begins without flights.

        Args:
            judge: judges the result of an attempt.
            lack_of_error: returns what a failed attempt lacked, given its error.
            joining: opens a context in which a caller without an own attempt waits.

        """
        self._judge, self._lack_of_error, self._joining = judge, lack_of_error, joining
        self._flights: dict[Key, _Flight[Result]] = {}
        self.waiting = 0
        """Number of waiting callers."""

    def __contains__(self, key: Key) -> bool:
        """Returns whether a caller waits for this key."""
        return key in self._flights

    async def ask(
        self,
        key: Key,
        work: Work[Result],
        caller: SingleFlightCaller | None = None,
        usable: Callable[[Result], bool] = lambda _: True,
    ) -> SharedResult[Result]:
        """Returns the result of another caller's attempt, or of an own attempt.

        Cancelling a caller does not affect the others. When the last caller is cancelled, all
        attempts are cancelled. Without a result, raises the error of the caller's own attempt, or
        of another attempt if there was no own one.

        Args:
            key: identifies the work.
            work: does the work, in an attempt of this caller.
            caller: the deadline and the client of this caller.
            usable: returns whether this caller accepts another caller's result.

        """
        flight = self._flights.setdefault(key, _Flight(self._judge, self._lack_of_error))
        waiter = FlightWaiter[Result](caller or SingleFlightCaller(), usable)
        attempt_ended = flight.join(waiter)
        self.waiting += 1
        try:
            while (step := waiter.next_step(flight.running)) is not NextStep.SETTLE:
                attempt_ended.clear()
                if step is NextStep.TRY:
                    waiter.own_attempt = flight.start_attempt(waiter.caller, work)
                with nullcontext() if waiter.own_attempt else self._joining():
                    await attempt_ended.wait()
        finally:
            self.waiting -= 1
            if flight.leave(waiter) and self._flights.get(key) is flight:
                del self._flights[key]
        return _shared_result(waiter)

    def cancel(self) -> None:
        """Cancels all attempts, and so all waiting callers."""
        for flight in list(self._flights.values()):
            flight.cancel()


class _Flight(Generic[Result]):
    """The attempts for one key, and the callers that wait for them."""

    def __init__(self, judge: Judge[Result], lack_of_error: LackOfError) -> None:
        self._judge, self._lack_of_error = judge, lack_of_error
        self.running: dict[FlightAttempt, asyncio.Task[Result]] = {}
        self._waiters: dict[FlightWaiter[Result], asyncio.Event] = {}

    def join(self, waiter: FlightWaiter[Result]) -> asyncio.Event:
        """Adds a caller; returns an event that is set whenever an attempt ends."""
        self._waiters[waiter] = asyncio.Event()
        return self._waiters[waiter]

    def leave(self, waiter: FlightWaiter[Result]) -> bool:
        """Removes a caller. If it was the last one, cancels all attempts and returns True."""
        del self._waiters[waiter]
        if not self._waiters:
            self.cancel()
        return not self._waiters

    def start_attempt(self, caller: SingleFlightCaller, work: Work[Result]) -> FlightAttempt:
        attempt = FlightAttempt(caller)
        self.running[attempt] = asyncio.create_task(_run(attempt, work))
        self.running[attempt].add_done_callback(partial(self._record_end, attempt))
        return attempt

    def cancel(self) -> None:
        for task in self.running.values():
            task.cancel()

    def _record_end(self, attempt: FlightAttempt, task: "asyncio.Task[Result]") -> None:
        del self.running[attempt]
        ended = self._ended_attempt(attempt, task)
        for waiter, attempt_ended in self._waiters.items():
            waiter.record_end(ended)
            attempt_ended.set()

    def _ended_attempt(
        self, attempt: FlightAttempt, task: "asyncio.Task[Result]"
    ) -> EndedAttempt[Result]:
        if task.cancelled():
            return EndedAttempt(attempt, Lack.NOTHING, error=asyncio.CancelledError())
        if (error := task.exception()) is not None:
            traceback = error.__traceback__
            return EndedAttempt(
                attempt, self._lack_of_error(error), error=error, traceback=traceback
            )
        lack, worth = self._judge(task.result())
        return EndedAttempt(attempt, lack, result=task.result(), worth=worth)


async def _run(attempt: FlightAttempt, work: Work[Result]) -> Result:
    attempt.record_start()
    return await work()


def _shared_result(waiter: FlightWaiter[Result]) -> SharedResult[Result]:
    outcome = waiter.outcome()
    if outcome.error is not None:
        # otherwise every caller would add its frames to the traceback
        raise outcome.error.with_traceback(outcome.traceback)
    assert outcome.result is not None
    return SharedResult(outcome.result, outcome.attempt is waiter.own_attempt)
