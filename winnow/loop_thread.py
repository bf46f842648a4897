"""An event loop in a thread, so that synchronous callers can run asynchronous code."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from winnow.errors import UnavailableError

Result = TypeVar("Result")


class LoopThread:
    """Runs coroutines on one event loop, for any number of threads."""

    def __init__(self, name: str) -> None:
        """Starts the thread. `name`: name of the thread, also used in error messages."""
        self._closed = f"the {name} was closed: open it again"
        self._loop = asyncio.new_event_loop()
        self._lock = threading.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()
        """Tasks that run on the loop. Only the loop's thread uses this set."""
        self.is_closed = False
        """Whether `close` was called; `run` then raises an error."""
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """Runs `work` and returns its result. Ctrl-C cancels the work.

        Raises UnavailableError if `close` was called before or during the work.
        """
        with self._lock:
            if self.is_closed:
                work.close()
                raise UnavailableError(self._closed)
            future = asyncio.run_coroutine_threadsafe(self._tracked(work), self._loop)
        try:
            return future.result()
        except CancelledError as error:
            raise UnavailableError(self._closed) from error
        except BaseException:
            future.cancel()
            raise

    def close(self, last: Coroutine[Any, Any, None]) -> None:
        """Cancels all running work, waits until it has ended, runs `last`, and ends the thread.

        Does nothing after the first call.
        """
        with self._lock:
            if self.is_closed:
                last.close()
                return
            self.is_closed = True
        try:
            asyncio.run_coroutine_threadsafe(self._shut_down(last), self._loop).result()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    async def _tracked(self, work: Coroutine[Any, Any, Result]) -> Result:
        task = asyncio.current_task()
        assert task is not None  # a coroutine runs in a task
        self._tasks.add(task)
        try:
            return await work
        finally:
            self._tasks.discard(task)

    async def _shut_down(self, last: Coroutine[Any, Any, None]) -> None:
        for task in self._tasks:
            if not task.cancelling():  # a second cancellation would interrupt the cleanup
                task.cancel()
        if self._tasks:
            await asyncio.wait(tuple(self._tasks))
        await last
