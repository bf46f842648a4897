"""Structured logs on standard error: JSON lines for programs, text for people.

Logging neither blocks nor fails, wherever standard error leads: a service answers as if it were not
there. What cannot be written is dropped and counted.
"""

import contextlib
import logging
import os
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import structlog
from structlog.dev import ConsoleRenderer, plain_traceback
from structlog.processors import JSONRenderer, TimeStamper, format_exc_info
from structlog.typing import EventDict, Processor, WrappedLogger

from winnow.policy.sampling import Kind, Sampler
from winnow.telemetry import stderr
from winnow.telemetry.logline import before_every_line, bounded, escaped, naming, prefixed
from winnow.telemetry.logqueue import LogQueue
from winnow.telemetry.python_logs import python_logs

_log = structlog.get_logger("winnow.logs")
_MOST_WAITING = 1_000
_MOST_A_SECOND, _MOST_WITH_STACK = 20, 2
"""Lines of one kind, without and with a stack."""
_PATIENCE = 1.0
"""Seconds that the last lines get to be written."""
_SUMMARY = "more lines like this"


class Logs:
    """The lines of a process on their way to standard error."""

    def __init__(self) -> None:
        self._sampler = Sampler(time.monotonic)
        # a thread may enter twice: garbage collection in between may log, too
        self._sampling = threading.RLock()
        self._awake = False
        self._queue = LogQueue(stderr.writer(), _MOST_WAITING, self._summarise)
        self.put = self._queue.put

    @property
    def dropped(self) -> int:
        """Lines that could not be written."""
        return self._queue.dropped

    def lost(self) -> None:
        """Counts a line that could not be made."""
        self._queue.lost(1)

    def sample(self, _logger: WrappedLogger, level: str, event: EventDict) -> EventDict:
        """Drops a line if there are too many of its kind just now, unless it reports success."""
        if event.get("status") == "OK" or event.get("event") == _SUMMARY:
            return event
        most = _MOST_WITH_STACK if event.get("exc_info") else _MOST_A_SECOND
        with self._sampling:
            if self._sampler.allows(_kind(level, event), most):
                return event
            if not self._awake:
                self._awake = True
                self._queue.wake()
        raise structlog.DropEvent

    def close(self) -> None:
        """Writes the waiting lines, if that is soon possible."""
        self._tell(unfinished=True)
        self._queue.close(_PATIENCE)

    def _summarise(self) -> float | None:
        """Logs how many lines were dropped; returns the seconds until there is more to report."""
        self._tell(unfinished=False)
        with self._sampling:
            due = self._sampler.due()
            self._awake = due is not None
        return due

    def _tell(self, unfinished: bool) -> None:
        with self._sampling:
            withheld = self._sampler.withheld(unfinished)
        for (level, event, method, status), lines in withheld.items():
            call = {"method": method, "status": status} if method else {}
            getattr(_log, level)(_SUMMARY, like=event, **call, lines=lines)


@contextlib.contextmanager
def logging_to_stderr(level: str, as_json: bool = True) -> Iterator[Logs]:
    """Sets up the logs of a process: structlog, Python's `logging`, warnings and standard error.

    Turn `as_json` off for people at a terminal.
    """
    colours = _colours()
    logs = Logs()
    processors: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        logs.sample,
        structlog.processors.add_log_level,
        TimeStamper(fmt="iso", utc=True),
        format_exc_info,
        *([naming, bounded(JSONRenderer())] if as_json else [escaped, bounded(_text(colours))]),
    ]
    structlog.configure(
        processors=[_never_failing(processors, logs)],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        logger_factory=lambda *_: _LineLogger(logs),
    )
    if sys.stderr is not None:
        stderr.free_native_code()
    printed = stderr.Lines(lambda line: logs.put(before_every_line(line)))
    with contextlib.redirect_stderr(printed), python_logs():
        try:
            yield logs
        finally:
            logs.close()


class _LineLogger:
    """A logger that passes rendered lines of all levels on."""

    def __init__(self, logs: Logs) -> None:
        self.debug = self.info = self.warning = self.error = self.critical = logs.put


def _never_failing(processors: Sequence[Processor], logs: Logs) -> Processor:
    """Combines `processors`; an event on which one fails is counted, and the error not raised.

    A value that cannot be shown must not change an answer.
    """

    def processed(logger: Any, name: str, event: Any) -> Any:
        try:
            for process in processors:
                event = process(logger, name, event)
        except structlog.DropEvent:
            raise
        except Exception as error:
            logs.lost()
            raise structlog.DropEvent from error
        return event

    return processed


def _kind(level: str, event: EventDict) -> Kind:
    """Level, event, method and status. All are defined in the code, so there are few kinds."""
    said = event.get("logger") or event.get("event")
    return level, str(said), str(event.get("method", "")), str(event.get("status", ""))


def _text(colours: bool) -> Processor:
    return prefixed(ConsoleRenderer(colors=colours, exception_formatter=plain_traceback))


def _colours() -> bool:
    """Only at a terminal, and not if NO_COLOR (https://no-color.org) forbids them."""
    at_terminal = sys.stderr is not None and sys.stderr.isatty()
    return at_terminal and not os.environ.get("NO_COLOR")
