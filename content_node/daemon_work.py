"""Runs work that does not delay the exit of the process, such as loading a large shard.

The event loop and the interpreter join the threads of a pool when they end. Daemon threads are not
joined, so their work must be safe to interrupt.
"""

import asyncio
import contextlib
import os
import sys
import threading
from collections.abc import Callable
from functools import partial
from typing import Generic, TypeVar

Result = TypeVar("Result")


class DaemonWork(Generic[Result]):
    """A function that runs once in a daemon thread."""

    def __init__(self, work: Callable[[], Result]) -> None:
        """The exit may interrupt `work` anywhere, so it should only read."""
        self._work = work
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        """Whether the work has begun and is not done."""
        return self._thread is not None and self._thread.is_alive()

    async def result(self) -> Result:
        """Begins the work, and returns its result or raises its error; to be called once.

        A cancellation ends only the waiting; the thread continues.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        self._thread = threading.Thread(
            target=self._run, args=(loop, future), name="loading", daemon=True
        )
        self._thread.start()
        return await future

    def _run(self, loop: asyncio.AbstractEventLoop, future: "asyncio.Future[Result]") -> None:
        try:
            result = self._work()
        except BaseException as error:  # noqa: BLE001 (raised by `result`)
            _resolve(loop, future, partial(future.set_exception, error))
        else:
            _resolve(loop, future, partial(future.set_result, result))

    def exit_if_running(self) -> None:
        """Exits the process immediately if the work is not done.

        A normal exit would end the thread in the middle of native code, which aborts the process.
        """
        if self.is_running:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:  # None if it was closed before the start
                    stream.flush()
            os._exit(0)


def _resolve(
    loop: asyncio.AbstractEventLoop,
    future: "asyncio.Future[Result]",
    set_outcome: Callable[[], None],
) -> None:
    """Calls `set_outcome` on the event loop, unless the future was cancelled."""

    def set_unless_done() -> None:
        if not future.done():
            set_outcome()

    with contextlib.suppress(RuntimeError):  # the loop was closed
        loop.call_soon_threadsafe(set_unless_done)
