"""An event loop in a thread, so that synchronous callers can run asynchronous code."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError
from typing import Any, TypeVar

from winnow.errors import UnavailableError

Result = TypeVar("Result")


class LoopThread:
    """Runs coroutines on one event loop, for any number of threads."""

    def __init__(self, name: str, last: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Starts the thread.

        Args:
            name: name of the thread, also used in error messages.
            last: the work that `close` runs last, on the loop.

        """
        self._closed, self._last = f"the {name} was closed: open it again", last
        self._loop = asyncio.new_event_loop()
        self._lock = threading.Lock()
        self._tasks: set[asyncio.Task[Any]] = set()
        """Tasks that run on the loop. Only the loop's thread uses this set."""
        self.is_closed = False
        """Whether `close` was called; `run` then raises an error."""
        self._close_wanted = asyncio.Event()
        self._ended = threading.Event()
        self._error: BaseException | None = None
        """The error of the last work."""
        self._thread = threading.Thread(target=self._run_until_closed, name=name, daemon=True)
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

    def close(self) -> None:
        """Cancels all running work, waits until it and the last work have ended, and the thread.

        May be called again, also at the same time: each call waits until all has ended. Ctrl-C ends
        only the wait. The first call after the end raises the error of the last work.
        """
        with self._lock:
            self.is_closed = True
            with contextlib.suppress(RuntimeError):  # the loop was closed
                self._loop.call_soon_threadsafe(self._close_wanted.set)
        # not by joining the thread: after an interrupted `join`, a second one would not wait
        self._ended.wait()
        self._thread.join()
        error, self._error = self._error, None
        if error is not None:
            raise error

    def _run_until_closed(self) -> None:
        try:
            self._loop.run_until_complete(self._shut_down())
        except BaseException as error:  # noqa: BLE001 (raised by `close`)
            self._error = error
        finally:
            self._loop.close()
            self._ended.set()

    async def _tracked(self, work: Coroutine[Any, Any, Result]) -> Result:
        task = asyncio.current_task()
        assert task is not None  # a coroutine runs in a task
        self._tasks.add(task)
        try:
            return await work
        finally:
            self._tasks.discard(task)

    async def _shut_down(self) -> None:
        """Waits until `close` is called; then ends all work, and runs the last."""
        await self._close_wanted.wait()
        for task in self._tasks:
            if not task.cancelling():  # a second cancellation would interrupt the cleanup
                task.cancel()
        if self._tasks:
            await asyncio.wait(tuple(self._tasks))
        await self._last()
