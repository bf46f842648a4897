"""The stand-in for a pool of threads whose work takes processor time."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TypeVar

from simulation.process import current_process
from simulation.tails.loop import TimedLoop
from simulation.tails.machine import weight_of
from simulation.threads import SimulatedThreads, Turn

Result = TypeVar("Result")


class _Starting:
    """The niceness that the starting threads of a pool have set."""

    nice = 0


def lower_priority(nice: int) -> None:
    """Takes the place of `winnow.inference.niceness.lower_priority`."""
    _Starting.nice = nice


class TimedThreads(SimulatedThreads):
    """A stand-in for `winnow.inference.fair_threads.FairThreads`, with the same queue."""

    def __init__(
        self, threads: int, name: str, on_start: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(threads, name)
        _Starting.nice = 0
        on_start()
        self._weight = weight_of(_Starting.nice)

    async def run(self, client: str, work: Callable[[], Result]) -> Result:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()

        def turn() -> bool:
            if not future.done():
                loop.call_soon_threadsafe(_deliver, future, work())
            return False

        self.add(client, turn)
        try:
            return await future
        finally:
            self.remove(client, turn)

    def _wake(self, *, wakes: bool = True) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, TimedLoop)
        process = current_process()
        while self._idle and not self._closed and (entry := self._queue.take()) is not None:
            self._idle -= 1
            with loop.turn() as turn:
                more = entry[1]()
            end = partial(self._end, entry, more)
            loop.run_in_thread(process, turn, self._weight, end, wakes=wakes)

    def _end(self, entry: tuple[str, Turn], more: bool) -> None:
        if more:
            self._queue.put_back(*entry)
        self._idle += 1
        self._wake(wakes=False)


def _deliver(future: "asyncio.Future[Result]", result: Result) -> None:
    if not future.done():
        future.set_result(result)
