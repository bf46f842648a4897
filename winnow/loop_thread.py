"""An event loop in a thread, for synchronous callers of asynchronous code."""

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, TypeVar

from winnow.errors import UnavailableError

Result = TypeVar("Result")
_CLOSED = "it was closed: open it again"


class LoopThread:
    """Runs coroutines of any number of threads on one event loop."""

    def __init__(self, name: str) -> None:
        """Starts the thread; `name` is its name."""
        self._loop = asyncio.new_event_loop()
        self._lock = threading.Lock()
        self._running: set[Future[Any]] = set()
        self.is_closed = False
        """Whether nothing can be run any more."""
        self._thread = threading.Thread(target=self._loop.run_forever, name=name, daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        """The result of `work`; Ctrl-C cancels it.

        Raises UnavailableError if the thread was closed before, or while it ran.
        """
        with self._lock:
            if self.is_closed:
                work.close()
                raise UnavailableError(_CLOSED)
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
            self._running.add(future)
        try:
            return future.result()
        except CancelledError as error:
            raise UnavailableError(_CLOSED) from error
        except BaseException:
            future.cancel()
            raise
        finally:
            with self._lock:
                self._running.discard(future)

    def close(self, last: Coroutine[Any, Any, None]) -> None:
        """Cancels what is running, runs `last`, and ends the thread."""
        with self._lock:
            self.is_closed = True
            running = tuple(self._running)
        for future in running:
            future.cancel()
        try:
            asyncio.run_coroutine_threadsafe(last, self._loop).result()
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()
