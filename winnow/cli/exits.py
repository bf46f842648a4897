"""Prints the error of a command to stderr, and chooses its exit code."""

import errno
import os
import re
import sys
from collections.abc import Callable
from typing import NoReturn, cast

import typer

from winnow.errors import InvalidRequestError, UnauthenticatedError, WinnowError
from winnow.settings.errors import SettingsError, without_parser_details
from winnow.signals import exit_immediately, restore_default_handlers
from winnow.telemetry.logline import prefix_lines

_DISK_ERRORS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
_UNKNOWN_COMMAND = re.compile("no such command '([^']+)'")
FAILED, WRONG_USAGE, INTERRUPTED = 1, 2, 130
_FLAGS = {
    "after": "--after",
    "assignment": "--assignment",
    "filter": "--where",
    "head_ids": "--heads",
    "heads": "--heads",
    "index": "--on",
    "max_loss": "--max-loss",
    "min_confidence": "--min-confidence",
    "passages_to_read": "--passages-to-read",
    "tenant": "--tenant",
    "timeout": "--timeout",
}
"""The flag that sets a field of a request, by the name of the field."""

# typer exports neither class: they are in click or, in newer versions of typer, in a copy of click
_UsageError, _ClickError = cast("list[type[Exception]]", typer.BadParameter.__mro__[1:3])


def print_error(message: object) -> None:
    """Prints an error to stderr."""
    _print(f"error: {_message(message)}", style="bold")


def exit_code(
    run: Callable[[], object],
    command: str,
    commands_named: Callable[[str], list[str]] = lambda _: [],
    *,
    is_child: bool = False,
) -> int:
    """Runs a command. Returns 0, 1 after an error, 2 after wrong usage, or 130 after Ctrl-C.

    Args:
        run: runs the command; returns its exit code, or None for 0.
        command: the command that runs, named in the hint after wrong usage.
        commands_named: returns the commands with a name in all groups, such as `winnow index build`
            for `build`.
        is_child: whether another command runs this one, and says that it was interrupted.

    """
    try:
        code = run()
        if code == INTERRUPTED:  # typer returns it after Ctrl-C
            raise KeyboardInterrupt
        if sys.stdout is not None:  # None if it was closed at the start
            sys.stdout.flush()
        return code if isinstance(code, int) else 0
    except KeyboardInterrupt:
        return _report_interrupt(is_child)
    except typer.Abort as error:  # earlier versions of typer raise it after Ctrl-C
        return _report_interrupt(is_child or not isinstance(error.__cause__, KeyboardInterrupt))
    except (SettingsError, _UsageError) as error:
        return _report_usage(error, command, commands_named)
    except (WinnowError, _ClickError) as error:
        print_error(error)
        return FAILED
    except OSError as error:
        return _report_output_error(error)


def end_process(code: int) -> NoReturn:
    """Ends the process of a command with the code of `exit_code`."""
    if code == INTERRUPTED and "ray" in sys.modules:
        # an interrupted start of Ray leaves native threads, which crash an interpreter that ends
        exit_immediately(code)
    sys.exit(code)


def _report_interrupt(quiet: bool) -> int:
    """Says that the command was interrupted, unless `quiet`. The next signal kills the process."""
    restore_default_handlers()
    if not quiet:
        _print("interrupted")
    return INTERRUPTED


def _report_output_error(error: OSError) -> int:
    """Handles a closed pipe, such as in `winnow … | head`, and a full disk. Raises other errors."""
    closed = isinstance(error, BrokenPipeError)
    if not closed and (error.filename is not None or error.errno not in _DISK_ERRORS):
        raise error  # not an error of the output
    # otherwise the interpreter would fail when it flushes stdout at exit
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if not closed:
        print_error(f"cannot write the output: {error.strerror}")
    return FAILED


def _report_usage(
    error: Exception, command: str, commands_named: Callable[[str], list[str]]
) -> int:
    if type(error).__name__ == "NoArgsIsHelpError":  # help is printed already
        return WRONG_USAGE
    message = _message(error)
    context = getattr(error, "ctx", None)
    help_commands = [context.command_path if context else command]
    if (unknown := _UNKNOWN_COMMAND.match(message)) and (found := commands_named(unknown[1])):
        message, help_commands = unknown[0], found
    print_error(message)
    _print("try " + " or ".join(f"'{each} --help'" for each in help_commands))
    return WRONG_USAGE


def _message(error: object) -> str:
    """The message of an error in Winnow's style: lower case, no full stop."""
    if isinstance(error, UnauthenticatedError):  # add what to do at a command line
        return f"{error}; give a token with --token-file or WINNOW_TOKEN"
    if isinstance(error, InvalidRequestError):  # people know flags, and not fields of requests
        named = ((_FLAGS.get(each.field, each.field), each) for each in error.violations)
        return "; ".join(f"{name}: {each.description}" for name, each in named)
    if isinstance(error, _ClickError):
        text = str(error.format_message()).replace(": Value error, ", ": ")  # type: ignore[attr-defined]
        text = without_parser_details(text.replace(": Input should", ": should"))
        return text[:1].lower() + text[1:].rstrip(".") + _refused_value(error.__cause__)
    return str(error)


def _refused_value(cause: BaseException | None) -> str:
    """The invalid value of an option, which typer's message lacks."""
    if cause is None:
        return ""
    from pydantic import ValidationError  # noqa: PLC0415 (commands that succeed start sooner)

    if not isinstance(cause, ValidationError) or len(cause.errors()) != 1:
        return ""
    (details,) = cause.errors()
    return "" if repr(details["input"]) in details["msg"] else f", not {details['input']!r}"


def _print(text: str, style: str = "") -> None:
    from rich.console import Console  # noqa: PLC0415 (commands that succeed start sooner)

    console = Console(stderr=True, highlight=False, soft_wrap=True)
    console.print(prefix_lines(text), style=style, markup=False)
