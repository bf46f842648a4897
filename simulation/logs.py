"""Log lines of the simulated processes, as a part of the timeline."""

from collections.abc import Callable, MutableMapping
from typing import Any

import structlog

from simulation.process import current_process

OnLine = Callable[[str, str], None]
"""Called with the level of a log line, and with its process, event and fields."""


class _Sink:
    on_line: OnLine = lambda _level, _line: None


def set_sink(on_line: OnLine) -> None:
    """Makes each log line call a function."""
    _Sink.on_line = on_line


def _record(_: Any, level: str, line: MutableMapping[str, Any]) -> str:
    event = line.pop("event", "")
    line.pop("exc_info", None)
    fields = " ".join(f"{name}={value}" for name, value in sorted(line.items()))
    _Sink.on_line(level, f"{current_process().name}  {level}: {event} {fields}")
    raise structlog.DropEvent


def install() -> None:
    """Replaces the output of logs."""
    structlog.configure(
        processors=[_record],
        wrapper_class=structlog.make_filtering_bound_logger(20),
        cache_logger_on_first_use=True,
    )
