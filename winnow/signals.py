"""SIGTERM and Ctrl-C end a command alike: as KeyboardInterrupt, so that it can clean up.

A service is told of them instead, as often as they come, and ends by itself.
"""

import asyncio
import signal
from collections.abc import Callable
from types import FrameType

_BOTH = (signal.SIGTERM, signal.SIGINT)


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

    for number in _BOTH:
        signal.signal(number, tell)


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
