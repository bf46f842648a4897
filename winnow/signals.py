"""SIGTERM and Ctrl-C end a command alike: as KeyboardInterrupt, so that it can clean up.

A service is told of them instead, as often as they come, and ends by itself.
"""

import asyncio
import os
import signal
from collections.abc import Callable
from types import FrameType

_BOTH = (signal.SIGTERM, signal.SIGINT)
_MOST = 4_096
"""Signals to be told of at once."""


def end_on_signals() -> None:
    """Makes SIGTERM and Ctrl-C raise KeyboardInterrupt in the main thread.

    Ctrl-C too, since a process that a script starts in the background inherits it ignored.
    """
    for number in _BOTH:
        signal.signal(number, _interrupt)


def on_signals(loop: asyncio.AbstractEventLoop, call: Callable[[], object]) -> None:
    """Has `call` made on the loop at every SIGTERM and Ctrl-C, for as long as the loop runs.

    What comes later changes nothing. A handler of the loop's own would be gone with the loop, and
    the next signal would kill a process that is about to end well.
    """

    def tell(_number: int, _frame: FrameType | None) -> None:
        if not loop.is_closed():
            loop.call_soon_threadsafe(call)

    _wake(loop)
    for number in _BOTH:
        signal.signal(number, tell)


def ignore_signals() -> None:
    """For the end of a process: the interpreter takes down every other handler."""
    for number in _BOTH:
        signal.signal(number, signal.SIG_IGN)


def _wake(loop: asyncio.AbstractEventLoop) -> None:
    """Has every signal end the loop's wait for something to do. By itself that goes on where
    another thread gets the signal, or this one just before it begins to wait.
    """
    reader, writer = os.pipe()  # never closed: the interpreter writes to it until it ends
    for each in (reader, writer):
        os.set_blocking(each, False)
    loop.add_reader(reader, os.read, reader, _MOST)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
