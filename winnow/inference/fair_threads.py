"""Threads that work for several clients in turn.

Knows pieces of work, each of one client; `winnow.policy.fair_queue` says whose turn it is.
"""

import asyncio
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from winnow.policy.fair_queue import FairQueue

Turn = Callable[[], bool]
"""Does a part of the work; True if it needs another turn. It must not raise."""
Result = TypeVar("Result")


class FairThreads:
    """A sized pool of threads. No thread is idle while anything waits."""

    def __init__(self, threads: int, name: str, begin: Callable[[], None] = lambda: None) -> None:
        """`begin` is called by each thread first."""
        self._begin = begin
        self._queue = FairQueue[Turn]()
        self._changed = threading.Condition()
        self._closed = False
        self._awaited: set[asyncio.Future[Any]] = set()
        self._threads: set[threading.Thread] = set()
        for number in range(threads):
            self._start(f"{name}_{number}")

    def add(self, client: str, turn: Turn) -> None:
        """Has a thread call `turn` in the client's turn, again as long as it returns True."""
        with self._changed:
            self._queue.add(client, turn)
            self._changed.notify()

    def remove(self, client: str, turn: Turn) -> None:
        """Removes work that waits; work that has begun goes on."""
        with self._changed:
            while self._queue.remove(client, turn):
                pass

    async def run(self, client: str, work: Callable[[], Result]) -> Result:
        """The result of one piece of work; if cancelled before its turn, the work is not done."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[Result] = loop.create_future()

        def turn() -> bool:
            try:
                result = work()
            except BaseException as error:  # noqa: BLE001 (raised where it is awaited)
                tell(loop, fail, done, error)
            else:
                tell(loop, succeed, done, result)
            return False

        self._awaited.add(done)
        self.add(client, turn)
        try:
            return await done
        finally:
            self._awaited.discard(done)
            self.remove(client, turn)

    def replace(self, thread: threading.Thread) -> None:
        """Starts a thread in place of one that hangs; that one ends when it comes back."""
        with self._changed:
            if thread in self._threads and not self._closed:
                self._threads.remove(thread)
                self._start(thread.name)
                self._changed.notify_all()  # it may have come back, and wait

    def close(self, wait: bool = True) -> None:
        """Cancels the work that waits, and waits for the threads to end.

        `wait`: False if a thread may hang; then it ends with the process.
        """
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        for thread in list(self._threads) if wait else ():
            thread.join()
        for done in list(self._awaited):
            tell(done.get_loop(), done.cancel)

    def _start(self, name: str) -> None:
        # an owner that fails before it closes them must not keep the process
        thread = threading.Thread(target=self._work, name=name, daemon=True)
        self._threads.add(thread)
        thread.start()

    def _work(self) -> None:
        self._begin()
        again: tuple[str, Turn] | None = None
        while (taken := self._next(again)) is not None:
            again = taken if taken[1]() else None
            del taken  # or the last work is kept in memory while none arrives

    def _next(self, again: tuple[str, Turn] | None) -> tuple[str, Turn] | None:
        with self._changed:
            if again is not None:
                self._queue.put_back(*again)
            while not self._closed and threading.current_thread() in self._threads:
                if (taken := self._queue.take()) is not None:
                    return taken
                self._changed.wait()
            return None


def tell(loop: asyncio.AbstractEventLoop, what: Callable[..., object], *arguments: object) -> None:
    """Has the loop call something; does nothing if the loop is closed."""
    try:
        loop.call_soon_threadsafe(what, *arguments)
    except RuntimeError:
        if not loop.is_closed():
            raise


def succeed(done: asyncio.Future[Result], result: Result) -> None:
    """Sets a result, unless nobody waits for it any more."""
    if not done.done():
        done.set_result(result)


def fail(done: asyncio.Future[Result], error: BaseException) -> None:
    """Sets an error, unless nobody waits for it any more."""
    if not done.done():
        done.set_exception(error)
