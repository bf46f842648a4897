"""A thread pool whose clients take turns.

Each piece of work belongs to one client; `winnow.policy.fair_queue` decides which client is next.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from winnow.errors import UnavailableError
from winnow.policy.fair_queue import FairQueue

Turn = Callable[[], bool]
"""Does one part of a piece of work; returns True if parts are left. It must not raise."""
Result = TypeVar("Result")


class FairThreads:
    """A thread pool of fixed size. No thread is idle while work waits."""

    def __init__(
        self, threads: int, name: str, on_start: Callable[[], None] = lambda: None
    ) -> None:
        """Starts the threads; each one first calls `on_start`."""
        self._on_start = on_start
        self._queue = FairQueue[Turn]()
        self._changed = threading.Condition()
        self._closed = False
        self._futures: set[asyncio.Future[Any]] = set()
        self._threads: set[threading.Thread] = set()
        for number in range(threads):
            self._start(f"{name}_{number}")

    def add(self, client: str, turn: Turn) -> None:
        """Makes a thread call `turn` when the client is next, and again while it returns True."""
        with self._changed:
            self._queue.add(client, turn)
            self._changed.notify()

    def remove(self, client: str, turn: Turn) -> None:
        """Removes waiting work; running work continues."""
        with self._changed:
            while self._queue.remove(client, turn):
                pass

    async def run(self, client: str, work: Callable[[], Result]) -> Result:
        """Runs `work` in the client's turn and returns its result.

        If the caller is cancelled before the work starts, the work is not done.

        Raises UnavailableError if the pool was closed before.
        """
        if self._closed:  # no thread would take the work
            raise UnavailableError("the threads for this work have ended: try again")
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()

        def run_work() -> bool:
            try:
                result = work()
            except BaseException as error:  # noqa: BLE001 (raised where it is awaited)
                call_on_event_loop(loop, fail, future, error)
            else:
                call_on_event_loop(loop, succeed, future, result)
            return False

        self._futures.add(future)
        self.add(client, run_work)
        try:
            return await future
        finally:
            self._futures.discard(future)
            self.remove(client, run_work)

    def replace(self, thread: threading.Thread) -> None:
        """Starts a thread in place of a hanging one. The latter ends when its work returns."""
        with self._changed:
            if thread in self._threads and not self._closed:
                self._threads.remove(thread)
                self._start(thread.name)
                self._changed.notify_all()  # the old thread may have returned and be waiting

    def close(self, wait: bool = True) -> None:
        """Waits for the threads to end, and cancels waiting work.

        `wait`: False if threads may hang. Hanging threads then end with the process.
        """
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in list(self._threads) if wait else ():
            thread.join()
        for future in list(self._futures):
            call_on_event_loop(future.get_loop(), future.cancel)

    def _start(self, name: str) -> None:
        # a daemon: must not keep the process running if the owner fails before closing the pool
        thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._threads.add(thread)
        thread.start()

    def _work(self) -> None:
        self._on_start()
        unfinished: tuple[str, Turn] | None = None
        while (entry := self._next_entry(unfinished)) is not None:
            unfinished = entry if entry[1]() else None
            del entry  # otherwise the last work stays in memory while none arrives

    def _next_entry(self, unfinished: tuple[str, Turn] | None) -> tuple[str, Turn] | None:
        with self._changed:
            if unfinished is not None:
                self._queue.put_back(*unfinished)
            while not self._closed and threading.current_thread() in self._threads:
                if (entry := self._queue.take()) is not None:
                    return entry
                self._changed.wait()
            return None


def call_on_event_loop(
    loop: asyncio.AbstractEventLoop, callback: Callable[..., object], *arguments: object
) -> None:
    """Runs `callback` on the thread of an event loop. Any thread may call this function.

    Does nothing if the loop is closed.
    """
    try:
        loop.call_soon_threadsafe(callback, *arguments)
    except RuntimeError:
        if not loop.is_closed():
            raise


def succeed(future: asyncio.Future[Result], result: Result) -> None:
    """Sets the result of a future, unless it was cancelled."""
    if not future.done():
        future.set_result(result)


def fail(future: asyncio.Future[Result], error: BaseException) -> None:
    """Sets the error of a future, unless it was cancelled."""
    if not future.done():
        future.set_exception(error)
