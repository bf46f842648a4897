"""Work that nobody waits for when the process ends: loading a shard takes as long as it is large.

A pool's threads are joined at the end of the event loop and of the interpreter. The threads here
are not. What they do must leave nothing half written.
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


class Loading(Generic[Result]):
    """One piece of work in a thread of its own."""

    def __init__(self, work: Callable[[], Result]) -> None:
        """`work` only reads: it may be cut off anywhere."""
        self._work = work
        self._thread: threading.Thread | None = None

    @property
    def goes_on(self) -> bool:
        """Whether the work was begun and is not done."""
        return self._thread is not None and self._thread.is_alive()

    async def result(self) -> Result:
        """Begins the work and waits for what it returns or raises; to be called once.

        Cancelled, it returns at once, and the thread goes on by itself.
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
        except BaseException as error:  # noqa: BLE001 (who waits decides)
            _tell(loop, future, partial(future.set_exception, error))
        else:
            _tell(loop, future, partial(future.set_result, result))

    def leave_behind(self) -> None:
        """Ends the process here and now if the work still goes on.

        The interpreter would end its thread in the middle of native code, which aborts.
        """
        if self.goes_on:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:  # None where it was closed from the beginning
                    stream.flush()
            os._exit(0)


def _tell(
    loop: asyncio.AbstractEventLoop, future: "asyncio.Future[Result]", say: Callable[[], None]
) -> None:
    def unless_given_up() -> None:
        if not future.done():
            say()

    with contextlib.suppress(RuntimeError):  # the loop was closed
        loop.call_soon_threadsafe(unless_given_up)
