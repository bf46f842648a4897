"""Formats log lines: limits their length, escapes characters, and adds the process name.

Escaping is needed because lines may contain text from callers.
"""

import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from winnow.settings.names import NAME_VARIABLE

if TYPE_CHECKING:  # commands import this module to print errors
    from structlog.typing import EventDict, Processor, WrappedLogger

MAX_LINE_LENGTH = 8_192
"""Maximum number of characters of a line."""
_MAX_VALUE_LENGTHS = (4_000, 400, 40)
"""Maximum number of characters per value. The first limit that shortens the line enough applies."""
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_STACK = "exception"


def limit_length(render: "Processor") -> "Processor":
    """Returns a renderer that shortens values until the line is short enough; JSON stays valid."""

    def rendered(logger: "WrappedLogger", name: str, event: "EventDict") -> str:
        line = ""
        for max_length in _MAX_VALUE_LENGTHS:
            shortened = {key: _shorten(value, max_length) for key, value in event.items()}
            line = str(render(logger, name, shortened))
            if len(line) <= MAX_LINE_LENGTH:
                return line
        return line[:MAX_LINE_LENGTH]

    return rendered


def escape_controls(_logger: "WrappedLogger", _name: str, event: "EventDict") -> "EventDict":
    """Escapes control characters as Python does. Needed only for text, as JSON escapes them anyway.

    Control characters could control a terminal, or split a line in two. The lines of a stack trace
    stay separate.
    """
    texts = {key: value for key, value in event.items() if isinstance(value, str)}
    return {
        **event,
        **{
            key: "\n".join(map(_escape, text.split("\n"))) if key == _STACK else _escape(text)
            for key, text in texts.items()
        },
    }


def _escape(text: str) -> str:
    return _CONTROLS.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def _shorten(value: object, max_length: int) -> object:
    """Cuts out the middle of a long value. The end of a stack trace is its most useful part."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else repr(value)
    if len(text) <= max_length:
        return value
    half = max_length // 2
    return f"{text[:half]} … ({len(text) - 2 * half:,} characters) … {text[-half:]}"


_WIDTH = 8


def process_prefix() -> str:
    """Returns the prefix of this process's log lines; empty if the process has no name."""
    name = os.environ.get(NAME_VARIABLE, "")
    return name and f"{name:<{_WIDTH}}"


def prefix_lines(text: str) -> str:
    """Returns the text with the process prefix before each of its lines."""
    start = process_prefix()
    return "\n".join(f"{start}{line}" for line in text.split("\n")) if start else text


def add_process_name(_logger: "WrappedLogger", _name: str, event: "EventDict") -> "EventDict":
    """Adds the name of this process, if it has one, to a JSON log line."""
    name = os.environ.get(NAME_VARIABLE)
    return {**event, "process": name} if name else event


def with_prefix(render: "Processor") -> "Callable[[WrappedLogger, str, EventDict], str]":
    """Returns a renderer for text that adds the process prefix before each line."""
    return lambda logger, name, event: prefix_lines(str(render(logger, name, event)))
