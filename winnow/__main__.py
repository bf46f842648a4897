"""The start of the command `winnow`: a signal ends it at once until there is anything to clean up.

This module imports nothing large. Imports take up to a second on a busy machine; in this time
Ctrl-C would show a stack, and the first process of a container would ignore SIGTERM.
"""

import os
import signal
from types import FrameType

_INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> None:
    """Runs a command; exits 0, 1 for an error, 2 for wrong usage, 130 for Ctrl-C or SIGTERM."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    from winnow.cli.commands import main as run  # noqa: PLC0415

    run(arguments)


def _leave(_number: int, _frame: FrameType | None) -> None:
    os._exit(_INTERRUPTED)


if __name__ == "__main__":
    main()
