"""SIGTERM and Ctrl-C: both end a command by KeyboardInterrupt, so that it can clean up.

A service gets a callback for each of them instead, and ends by itself.
"""

import asyncio
import contextlib
import os
import signal
from collections.abc import Callable, Coroutine
from types import FrameType
from typing import Any, TypeVar

Result = TypeVar("Result")
_BOTH = (signal.SIGTERM, signal.SIGINT)
_MOST_WAKES = 512


def end_on_signals() -> None:
    """Makes SIGTERM and Ctrl-C raise KeyboardInterrupt in the main thread.

    Ctrl-C too, since a process that a script starts in the background inherits it as ignored.
    """
    for number in _BOTH:
        signal.signal(number, _interrupt)


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Runs an event loop in the main thread, as `asyncio.run` does.

    The first SIGTERM or Ctrl-C cancels `main`, and raises KeyboardInterrupt when that has cleaned
    up; the next one raises it at once. A KeyboardInterrupt within `main` could be raised inside
    gRPC, which it crashes.
    """
    cancelling = _Cancelling()
    with contextlib.ExitStack() as stack:
        cancelling.install(stack)
        try:
            result = asyncio.run(cancelling.watch(main, stack))
        except asyncio.CancelledError:
            if not cancelling.told:
                raise
    if cancelling.told:
        raise KeyboardInterrupt
    return result


class _Cancelling:
    """Handles signals by cancelling a task."""

    def __init__(self) -> None:
        self.told = 0
        """Signals so far."""
        self._task: asyncio.Task[Any] | None = None

    def install(self, until: contextlib.ExitStack) -> None:
        """Installs the handlers; `until` restores the previous ones."""
        for number in _BOTH:
            until.callback(self._take_back, number, signal.getsignal(number))
            signal.signal(number, self._tell)

    async def watch(self, main: Coroutine[Any, Any, Result], until: contextlib.ExitStack) -> Result:
        """Runs `main` as the task that is cancelled."""
        self._task = asyncio.current_task()
        assert self._task is not None
        until.callback(_wake(self._task.get_loop()))
        if self.told:
            self._task.cancel()
        return await main

    def _tell(self, _number: int, _frame: FrameType | None) -> None:
        self.told += 1
        if self.told > 1:
            raise KeyboardInterrupt
        if self._task is not None:
            _call_soon(self._task.get_loop(), self._task.cancel)

    def _take_back(self, number: int, handler: Any) -> None:
        if signal.getsignal(number) == self._tell:  # else a service has its own, and keeps it
            signal.signal(number, handler)


def on_signals(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
    """Calls `call` on the loop at every SIGTERM and Ctrl-C, for as long as the loop runs.

    Later signals change nothing. A handler of the loop itself would be gone with the loop, and the
    next signal would kill a process that is about to end. Call it once in a process.
    """

    def tell(_number: int, _frame: FrameType | None) -> None:
        _call_soon(loop, call)

    _wake(loop)
    for number in _BOTH:
        signal.signal(number, tell)


def _call_soon(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(call)


def _wake(loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
    """Makes every signal wake the loop; returns a function that undoes it after the loop.

    A handler runs in the main thread, and only once that thread does something. A signal just
    before the thread sleeps, or one that the system gives to another thread, would wait until
    something else happens; in an idle process, for ever.
    """
    out, into = os.pipe()
    for end in (out, into):
        os.set_blocking(end, False)
    loop.add_reader(out, os.read, out, _MOST_WAKES)
    before = signal.set_wakeup_fd(into, warn_on_full_buffer=False)

    def release() -> None:
        signal.set_wakeup_fd(before)
        os.close(out)
        os.close(into)

    return release


def end_at_once_on_signals() -> None:
    """Restores the default handlers, for an interrupted command that is ending."""
    for number in _BOTH:
        signal.signal(number, signal.SIG_DFL)


def ignore_signals() -> None:
    """Ignores signals, for the end of a process: the interpreter removes every other handler."""
    for number in _BOTH:
        signal.signal(number, signal.SIG_IGN)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
