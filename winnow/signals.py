"""SIGTERM and Ctrl-C end a command alike: as KeyboardInterrupt, so that it can clean up.

A service is told of them instead, as often as they come, and ends by itself.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Coroutine
from functools import partial
from types import FrameType
from typing import Any, TypeVar

Result = TypeVar("Result")
_BOTH = (signal.SIGTERM, signal.SIGINT)
_MOST_WAKES = 512


def end_on_signals() -> None:
    """Makes SIGTERM and Ctrl-C raise KeyboardInterrupt in the main thread.

    Ctrl-C too, since a process that a script starts in the background inherits it ignored.
    """
    for number in _BOTH:
        signal.signal(number, _interrupt)


def run(main: Coroutine[Any, Any, Result]) -> Result:
    """Runs an event loop as `asyncio.run` does. SIGTERM and Ctrl-C cancel `main`, each time, and
    end in a KeyboardInterrupt when it has cleaned up.

    A KeyboardInterrupt in the middle of it may be in the middle of gRPC, which it crashes.
    """
    told = False
    cancel = release = _nothing

    def tell(_number: int, _frame: FrameType | None) -> None:
        nonlocal told
        told = True
        cancel()

    async def watched() -> Result:
        nonlocal cancel, release
        loop, task = asyncio.get_running_loop(), asyncio.current_task()
        assert task is not None
        release = _wake(loop)
        cancel = partial(_call_soon, loop, task.cancel)
        if told:
            cancel()
        return await main

    before = {number: signal.signal(number, tell) for number in _BOTH}
    try:
        return asyncio.run(watched())
    finally:
        if signal.getsignal(signal.SIGINT) is tell:  # else a service was told of what came later
            release()
            for number, handler in before.items():
                signal.signal(number, handler)
        if told:
            raise KeyboardInterrupt


def on_signals(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
    """Has `call` made on the loop at every SIGTERM and Ctrl-C, for as long as the loop runs.

    What comes later changes nothing. A handler of the loop's own would be gone with the loop, and
    the next signal would kill a process that is about to end well. To be called once in a process.
    """

    def tell(_number: int, _frame: FrameType | None) -> None:
        _call_soon(loop, call)

    _wake(loop)
    for number in _BOTH:
        signal.signal(number, tell)


def _nothing() -> None:
    pass


def _call_soon(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
    if not loop.is_closed():
        loop.call_soon_threadsafe(call)


def _wake(loop: asyncio.AbstractEventLoop) -> Callable[[], None]:
    """Has every signal wake the loop. Its handler runs in the main thread, and not before that does
    something: one that came just before the thread went to sleep, or that the system handed to
    another thread, would wait until something else happens, and in an idle process that is never.

    Returns what takes that back, after the loop.
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
    """For a command that was interrupted, and is ending: nothing is left to clean up."""
    for number in _BOTH:
        signal.signal(number, signal.SIG_DFL)


def ignore_signals() -> None:
    """For the end of a process: the interpreter takes down every other handler."""
    for number in _BOTH:
        signal.signal(number, signal.SIG_IGN)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
