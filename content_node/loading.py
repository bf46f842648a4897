"""Work that does not delay the end of the process, such as loading a large shard.

Threads of a pool are joined at the end of the event loop and of the interpreter. Threads here are
not joined. So their work must be safe to cut off.
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
    """One piece of work in a daemon thread."""

    def __init__(self, work: Callable[[], Result]) -> None:
        """`work` may be cut off anywhere, so it should only read."""
        self._work = work
        self._thread: threading.Thread | None = None

    @property
    def goes_on(self) -> bool:
        """Whether the work was begun and is not done."""
        return self._thread is not None and self._thread.is_alive()

    async def result(self) -> Result:
        """Begins the work, and returns or raises its result; to be called once.

        If this is cancelled, it returns at once, and the thread continues.
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
            _tell(loop, future, partial(future.set_exception, error))
        else:
            _tell(loop, future, partial(future.set_result, result))

    def leave_behind(self) -> None:
        """Exits the process at once if the work is not done.

        The interpreter would end the thread in the middle of native code, which aborts.
        """
        if self.goes_on:
            for stream in (sys.stdout, sys.stderr):
                if stream is not None:  # None if it was closed before the start
                    stream.flush()
            os._exit(0)


def _tell(
    loop: asyncio.AbstractEventLoop, future: "asyncio.Future[Result]", say: Callable[[], None]
) -> None:
    def unless_cancelled() -> None:
        if not future.done():
            say()

    with contextlib.suppress(RuntimeError):  # the loop was closed
        loop.call_soon_threadsafe(unless_cancelled)
