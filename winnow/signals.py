"""SIGTERM and Ctrl-C end a command alike: as KeyboardInterrupt, so that it can clean up.

A service is told of them instead, as often as they come, and ends by itself.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from types import FrameType

_BOTH = (signal.SIGTERM, signal.SIGINT)
_MOST_WAKES = 512


def end_on_signals() -> None:
    """Makes SIGTERM and Ctrl-C raise KeyboardInterrupt in the main thread.

    Ctrl-C too, since a process that a script starts in the background inherits it ignored.
    """
    for number in _BOTH:
        signal.signal(number, _interrupt)


def on_signals(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
    """Has `call` made on the loop at every SIGTERM and Ctrl-C, for as long as the loop runs.

    What comes later changes nothing. A handler of the loop's own would be gone with the loop, and
    the next signal would kill a process that is about to end well. To be called once in a process.
    """

    def tell(_number: int, _frame: FrameType | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(call)

    _wake(loop)
    for number in _BOTH:
        signal.signal(number, tell)


def _wake(loop: asyncio.AbstractEventLoop) -> None:
    """Has every signal wake the loop. Its handler runs in the main thread, and not before that does
    something: one that came just before the thread went to sleep, or that the system handed to
    another thread, would wait until something else happens, and in an idle process that is never.
    """
    out, into = os.pipe()
    for end in (out, into):
        os.set_blocking(end, False)
    loop.add_reader(out, os.read, out, _MOST_WAKES)
    signal.set_wakeup_fd(into, warn_on_full_buffer=False)


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
