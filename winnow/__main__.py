"""The entry point of the command `winnow`.

Installs signal handlers before importing large modules, which takes up to a second. Without the
handlers, Ctrl-C would print a traceback, and the first process of a container would ignore SIGTERM.
"""

import os
import signal
from types import FrameType

_EXIT_INTERRUPTED = 130


def main(arguments: list[str] | None = None) -> None:
    """Runs a command. Exit codes: 0, 1 for an error, 2 for wrong usage, 130 for a signal."""
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _exit)
    from winnow.cli.commands import main as run  # noqa: PLC0415

    run(arguments)


def _exit(_number: int, _frame: FrameType | None) -> None:
    os._exit(_EXIT_INTERRUPTED)


if __name__ == "__main__":
    main()
