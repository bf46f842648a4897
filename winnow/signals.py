"""SIGTERM and Ctrl-C end a command alike: as KeyboardInterrupt, so that it can clean up."""

import signal
from types import FrameType


def end_on_signals() -> None:
    """Makes SIGTERM and Ctrl-C raise KeyboardInterrupt in the main thread.

    Ctrl-C too, since a process that a script starts in the background inherits it ignored.
    """
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _interrupt)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
