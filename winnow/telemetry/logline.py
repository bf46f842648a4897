"""The form of a log line: its length, its characters, and the prefix that names the process.

Much of a line may be what callers sent.
"""

import os
import re
from collections.abc import Callable

from structlog.typing import EventDict, Processor, WrappedLogger

from winnow.settings.names import NAME_VARIABLE

LONGEST = 8_192
"""Characters of a line."""
_LONGEST_VALUES = (4_000, 400, 40)
"""Characters that each value may have: the first that makes the line short enough."""
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029]")
_STACK = "exception"


def bounded(render: Processor) -> Processor:
    """Renders a line with its values cut until it is short enough; JSON stays whole."""

    def rendered(logger: WrappedLogger, name: str, event: EventDict) -> str:
        line = ""
        for longest in _LONGEST_VALUES:
            short = {key: _shortened(value, longest) for key, value in event.items()}
            line = str(render(logger, name, short))
            if len(line) <= LONGEST:
                return line
        return line[:LONGEST]

    return rendered


def escaped(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    """Escapes control characters as Python does; JSON does so by itself.

    A terminal would obey them, and a reader would take one line for two. The lines of a stack stay
    separate.
    """
    texts = {key: value for key, value in event.items() if isinstance(value, str)}
    return {
        **event,
        **{
            key: "\n".join(map(_escaped, text.split("\n"))) if key == _STACK else _escaped(text)
            for key, text in texts.items()
        },
    }


def _escaped(text: str) -> str:
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def _shortened(value: object, longest: int) -> object:
    """Cuts the middle out, since the end of a stack says most."""
    if value is None or isinstance(value, bool | int | float):
        return value
    text = value if isinstance(value, str) else repr(value)
    if len(text) <= longest:
        return value
    half = longest // 2
    return f"{text[:half]} … ({len(text) - 2 * half:,} characters) … {text[-half:]}"


_WIDTH = 8


def prefix() -> str:
    """The prefix of every line of this process; empty for a process that has no name."""
    name = os.environ.get(NAME_VARIABLE, "")
    return name and f"{name:<{_WIDTH}}"


def before_every_line(text: str) -> str:
    """The text with the prefix before each of its lines."""
    start = prefix()
    return "\n".join(f"{start}{line}" for line in text.split("\n")) if start else text


def naming(_logger: WrappedLogger, _name: str, event: EventDict) -> EventDict:
    """Adds the name of this process to a log line for programs, if it has one."""
    name = os.environ.get(NAME_VARIABLE)
    return {**event, "process": name} if name else event


def prefixed(render: Processor) -> Callable[[WrappedLogger, str, EventDict], str]:
    """Renders a log line for people, with the prefix before each of its lines."""
    return lambda logger, name, event: before_every_line(str(render(logger, name, event)))
