"""Stand-ins for the threads of a process: their work takes drawn durations on the event loop."""

import asyncio
import threading
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, TypeVar

from simulation.loop import SimulatedLoop
from simulation.process import current_process
from winnow.policy.fair_queue import FairQueue

Turn = Callable[[], bool]
Result = TypeVar("Result")


class SimulatedThreads:
    """A stand-in for `winnow.inference.fair_threads.FairThreads`, with the same queue."""

    def __init__(
        self, threads: int, name: str, on_start: Callable[[], None] = lambda: None
    ) -> None:
        self._idle = threads
        self._queue = FairQueue[Turn]()
        self._closed = False

    def add(self, client: str, turn: Turn) -> None:
        self._queue.add(client, turn)
        self._wake()

    def remove(self, client: str, turn: Turn) -> None:
        while self._queue.remove(client, turn):
            pass

    async def run(self, client: str, work: Callable[[], Result]) -> Result:
        future: asyncio.Future[Result] = asyncio.get_running_loop().create_future()

        def turn() -> bool:
            if future.done():
                return False
            try:
                result = work()
            except BaseException as error:  # noqa: BLE001 (raised where it is awaited)
                future.set_exception(error)
            else:
                future.set_result(result)
            return False

        self.add(client, turn)
        try:
            return await future
        finally:
            self.remove(client, turn)

    def replace(self, thread: threading.Thread) -> None:
        """Does nothing: simulated threads do not hang."""

    def close(self, wait: bool = True) -> None:
        self._closed = True

    def _wake(self) -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, SimulatedLoop)
        while self._idle and not self._closed and (entry := self._queue.take()) is not None:
            self._idle -= 1
            loop.call_later(loop.draw_duration(current_process()), self._work, entry)

    def _work(self, entry: tuple[str, Turn]) -> None:
        if entry[1]():
            self._queue.put_back(*entry)
        self._idle += 1
        self._wake()


class SimulatedDaemonWork(Generic[Result]):
    """A stand-in for `winnow.content_node.daemon_work.DaemonWork`."""

    def __init__(
        self, work: Callable[[], Result], discard: Callable[[Result], None] = lambda _: None
    ) -> None:
        self._work, self._discard = work, discard
        self.is_running = False

    async def result(self) -> Result:
        work = asyncio.get_running_loop().run_in_executor(None, self._work)
        try:
            return await asyncio.shield(work)
        except asyncio.CancelledError:
            work.add_done_callback(partial(_discard, self._discard))
            raise

    def exit_if_running(self) -> None:
        """Does nothing."""


def _discard(discard: Callable[[Any], None], work: "asyncio.Future[Any]") -> None:
    if not work.cancelled() and work.exception() is None:
        discard(work.result())
