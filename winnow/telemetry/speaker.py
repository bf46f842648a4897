"""Which of several processes says a line, where all of them write to the same terminal or file."""

import os
from collections.abc import Callable

from structlog.typing import EventDict, Processor, WrappedLogger

from winnow.settings.names import NAME_VARIABLE

_WIDTH = 8


def prefix() -> str:
    """What this process puts before every line of text; empty for a process that is on its own."""
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
    """Renders a log line for people with the prefix before each of its lines."""
    return lambda logger, name, event: before_every_line(str(render(logger, name, event)))
