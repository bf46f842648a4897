"""The end of a command: its error on stderr, and its exit code."""

import errno
import os
import sys
from collections.abc import Callable
from typing import cast

import typer
from pydantic import ValidationError
from rich.console import Console

from winnow.errors import UnauthenticatedError, WinnowError
from winnow.settings.source import SettingsError
from winnow.signals import end_at_once_on_signals
from winnow.telemetry.logline import before_every_line

_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130

# typer took these classes from click, and later made its own
_UsageError, _Shown = cast("list[type[Exception]]", typer.BadParameter.__mro__[1:3])


def complain(message: object) -> None:
    """Prints an error on stderr."""
    _say(f"error: {_words(message)}", style="bold")


def exit_code(run: Callable[[], object], command: str) -> int:
    """Runs a command; returns 0, 1 for an error, 2 for wrong usage, or 130 for Ctrl-C.

    Args:
        run: returns an exit code, or None for 0.
        command: words of the command, for the hint after wrong usage.

    """
    try:
        code = run()
        if sys.stdout is not None:  # None where it was closed from the beginning
            sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except KeyboardInterrupt:
        end_at_once_on_signals()
        _say("interrupted")
        return INTERRUPTED
    except typer.Abort:
        end_at_once_on_signals()
        return INTERRUPTED
    except (SettingsError, _UsageError) as error:
        return _wrong_usage(error, command)
    except (WinnowError, _Shown) as error:
        complain(error)
        return FAILED
    except OSError as error:
        return _unwritten(error)


def _unwritten(error: OSError) -> int:
    """Handles `winnow … | head` that closes the pipe, and `winnow … > file` on a full disk."""
    closed = isinstance(error, BrokenPipeError)
    if not closed and (error.filename is not None or error.errno not in _FULL):
        raise error  # the error is about a file, and not about the output
    # the interpreter would write the rest of the output when it ends, and fail
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if not closed:
        complain(f"cannot write the output: {error.strerror}")
    return FAILED


def _wrong_usage(error: Exception, command: str) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":  # which has shown the help
        return WRONG_USAGE
    complain(error)
    context = getattr(error, "ctx", None)
    _say(f"try '{context.command_path if context else command} --help'")
    return WRONG_USAGE


def _words(error: object) -> str:
    """The message in Winnow's style: lower case, no full stop."""
    if isinstance(error, UnauthenticatedError):  # its message is for programs
        return f"{error}; --token-file or WINNOW_TOKEN gives one"
    if isinstance(error, _Shown):
        shown = str(error.format_message()).replace(": Value error, ", ": ")  # type: ignore[attr-defined]
        shown = shown.replace(": Input should", ": should")
        return shown[:1].lower() + shown[1:].rstrip(".") + _value(error.__cause__)
    return str(error)


def _value(cause: BaseException | None) -> str:
    """The refused value of an option, which typer leaves out."""
    if not isinstance(cause, ValidationError) or len(cause.errors()) != 1:
        return ""
    (fault,) = cause.errors()
    return "" if repr(fault["input"]) in fault["msg"] else f", not {fault['input']!r}"


def _say(text: str, style: str = "") -> None:
    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(before_every_line(text), style=style, markup=False)
