"""Runs work that does not delay the exit of the process, such as loading a large shard.

At exit, the event loop and the interpreter join the threads of pools, but no daemon threads. So the
work of a daemon thread must be safe to interrupt.
"""

import asyncio
import threading
from collections.abc import Callable
from contextvars import copy_context
from functools import partial
from typing import Generic, TypeVar

from winnow.signals import exit_immediately

Result = TypeVar("Result")


class DaemonWork(Generic[Result]):
    """A function that runs once in a daemon thread."""

    def __init__(
        self, work: Callable[[], Result], discard: Callable[[Result], None] = lambda _: None
    ) -> None:
        """`work` should only read, since the exit may interrupt it anywhere.

        `discard` releases a result that nobody waits for any more.
        """
        self._work, self._discard = work, discard
        self._thread: threading.Thread | None = None

    @property
    def is_running(self) -> bool:
        """Whether the work has begun and is not done."""
        return self._thread is not None and self._thread.is_alive()

    async def result(self) -> Result:
        """Starts the work and waits for its result; raises its error. To be called once.

        A cancellation ends only the wait. The thread continues, and its result is discarded.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()
        run = partial(copy_context().run, self._run, loop, future)  # for the context of log lines
        self._thread = threading.Thread(target=run, name="loading", daemon=True)
        self._thread.start()
        try:
            return await future
        except asyncio.CancelledError:
            # the wait was cancelled just after the work was done
            if future.done() and not future.cancelled() and future.exception() is None:
                self._discard(future.result())
            raise

    def _run(self, loop: asyncio.AbstractEventLoop, future: "asyncio.Future[Result]") -> None:
        try:
            result = self._work()
        except BaseException as error:  # noqa: BLE001 (raised by `result`)
            _resolve_future(loop, future, partial(future.set_exception, error), lambda: None)
        else:
            discard = partial(self._discard, result)
            _resolve_future(loop, future, partial(future.set_result, result), discard)

    @property
    def running_thread(self) -> threading.Thread | None:
        """The thread of work that has begun and is not done; None otherwise.

        Once it has ended, it keeps nothing of the work in memory.
        """
        return self._thread if self.is_running else None

    def exit_if_running(self) -> None:
        """Exits the process immediately if the work is not done.

        A normal exit would end the thread in the middle of native code, which aborts the process.
        """
        if self.is_running:
            exit_immediately(0)


def _resolve_future(
    loop: asyncio.AbstractEventLoop,
    future: "asyncio.Future[Result]",
    set_outcome: Callable[[], None],
    discard: Callable[[], None],
) -> None:
    """Calls `set_outcome` on the event loop, or `discard` if nobody waits for the future."""

    def set_unless_done() -> None:
        if future.done():
            discard()
        else:
            set_outcome()

    try:
        loop.call_soon_threadsafe(set_unless_done)
    except RuntimeError:  # the loop was closed
        discard()
