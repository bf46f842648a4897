"""Work that several ask for at the same time, done once.

Knows tasks, whoever waits for them, and how long they may take; knows neither what is made nor
whether it is kept afterwards.
"""

import asyncio
from collections.abc import Callable, Coroutine, Hashable
from typing import Any, Generic, TypeVar

from winnow.deadline import LONGEST, Deadline

_SLACK = 0.01
"""Seconds by which deadlines differ that were set at once."""
Key = TypeVar("Key", bound=Hashable)
Result = TypeVar("Result")


class Flight(Generic[Result]):
    """A piece of work that is being done, for everybody who waits for it."""

    def __init__(
        self, task: "asyncio.Task[Result]", deadline: Deadline, ended: Callable[[], None]
    ) -> None:
        """`deadline`: of the work; `ended` is called when it is done or given up."""
        self._task, self._deadline, self._ended = task, deadline, ended
        self._began, self._waiting = deadline.clock(), 0
        task.add_done_callback(self._done)

    async def result(self) -> Result:
        """Waits among others: whoever is cancelled takes it from nobody, but the last one ends it,
        or it would keep working for those who gave up.

        Raises what the work raises.
        """
        self._waiting += 1
        try:
            return await asyncio.shield(self._task)
        finally:
            self._waiting -= 1
            if not self._waiting:
                self.cancel()

    def in_time_for(self, deadline: Deadline) -> bool:
        """Whether it ends before `deadline`, as far as its own deadline says."""
        return self._deadline.at <= deadline.at + _SLACK

    def age(self) -> float:
        """Seconds since it began."""
        return self._deadline.clock() - self._began

    def cancel(self) -> None:
        """Gives it up; nothing happens if it is done."""
        self._task.cancel()
        self._ended()

    def _done(self, task: "asyncio.Task[Result]") -> None:
        self._ended()
        if not task.cancelled():
            task.exception()  # whoever waited was told; perhaps nobody did


class SingleFlight(Generic[Key, Result]):
    """The work in hand by what it makes; whoever comes after the end begins anew."""

    def __init__(self) -> None:
        """Nothing is in hand."""
        self._flights: dict[Key, Flight[Result]] = {}

    def get(self, key: Key) -> Flight[Result] | None:
        """The work in hand that makes this, if there is any."""
        return self._flights.get(key)

    def begin(
        self, key: Key, work: Coroutine[Any, Any, Result], deadline: Deadline | None = None
    ) -> Flight[Result]:
        """Begins the work for whoever waits for it then; in the place of older work, if any."""
        until = deadline or Deadline.after(LONGEST)

        def ended() -> None:
            if self._flights.get(key) is flight:
                del self._flights[key]

        flight = Flight(asyncio.create_task(work), until, ended)
        self._flights[key] = flight
        return flight

    def cancel(self) -> None:
        """Gives up all work in hand."""
        for flight in list(self._flights.values()):
            flight.cancel()
