"""Log lines of the simulated processes, as a part of the timeline."""

from collections.abc import Callable, MutableMapping
from typing import Any

import structlog

from simulation.process import current_process


class _Sink:
    record: Callable[[str], None] = lambda _: None


def set_record(record: Callable[[str], None]) -> None:
    """Makes log lines a part of a timeline."""
    _Sink.record = record


def _record(_: Any, level: str, line: MutableMapping[str, Any]) -> str:
    event = line.pop("event", "")
    line.pop("exc_info", None)
    fields = " ".join(f"{name}={value}" for name, value in sorted(line.items()))
    _Sink.record(f"{current_process().name}  {level}: {event} {fields}")
    raise structlog.DropEvent


def install() -> None:
    """Replaces the output of logs."""
    structlog.configure(
        processors=[_record],
        wrapper_class=structlog.make_filtering_bound_logger(20),
        cache_logger_on_first_use=True,
    )
