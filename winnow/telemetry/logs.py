"""Structured logs on standard error: JSON lines for programs, text for people.

Logging neither blocks nor fails, even if standard error is full, closed or not read. Lines that
cannot be written are dropped and counted.
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

from winnow.policy.sampling import Kind, LogSampler
from winnow.telemetry import stderr
from winnow.telemetry.logline import (
    add_process_name,
    escape_controls,
    limit_length,
    prefix_lines,
    with_prefix,
)
from winnow.telemetry.logqueue import LogQueue
from winnow.telemetry.python_logs import forward_python_logs

_log = structlog.get_logger("winnow.logs")
_MAX_WAITING = 1_000
_MAX_PER_SECOND, _MAX_WITH_STACK = 20, 2
"""Maximum number of lines of one kind per second, without and with a stack trace."""
_CLOSE_SECONDS = 1.0
"""Seconds to write the last lines before the process ends."""
_SUMMARY = "more lines like this"


class Logs:
    """Samples the log lines of a process and writes them to standard error in a thread."""

    def __init__(self) -> None:
        self._sampler = LogSampler(time.monotonic)
        # reentrant: a garbage collection within the lock may log, too
        self._sampling = threading.RLock()
        self._awake = False
        """Whether the queue's thread has been woken to report withheld lines."""
        self._queue = LogQueue(stderr.open_writer(), _MAX_WAITING, self._summarise)
        self.put = self._queue.put

    @property
    def dropped(self) -> int:
        """Number of lines that could not be written."""
        return self._queue.dropped

    def count_dropped(self) -> None:
        """Counts a line that could not be rendered."""
        self._queue.count_dropped(1)

    def sample(self, _logger: WrappedLogger, level: str, event: EventDict) -> EventDict:
        """A structlog processor that limits lines of one kind per second, except for success."""
        if event.get("status") == "OK" or event.get("event") == _SUMMARY:
            return event
        max_lines = _MAX_WITH_STACK if event.get("exc_info") else _MAX_PER_SECOND
        with self._sampling:
            if self._sampler.allows(_kind(level, event), max_lines):
                return event
            if not self._awake:
                self._awake = True
                self._queue.wake()
        raise structlog.DropEvent

    def close(self) -> None:
        """Writes the waiting lines, for at most a second."""
        self._log_withheld(unfinished=True)
        self._queue.close(_CLOSE_SECONDS)

    def _summarise(self) -> float | None:
        """Logs how many lines were withheld; returns the seconds until the next report."""
        self._log_withheld(unfinished=False)
        with self._sampling:
            due = self._sampler.seconds_until_report()
            self._awake = due is not None
        return due

    def _log_withheld(self, unfinished: bool) -> None:
        with self._sampling:
            withheld = self._sampler.withheld_lines(unfinished)
        for (level, event, method, status), lines in withheld.items():
            call = {"method": method, "status": status} if method else {}
            getattr(_log, level)(_SUMMARY, like=event, **call, lines=lines)


@contextlib.contextmanager
def logging_to_stderr(level: str, as_json: bool = True) -> Iterator[Logs]:
    """Sets up the logs of a process: structlog, Python's `logging`, warnings and standard error.

    With `as_json` off, lines are text for people at a terminal.
    """
    colours = _use_colours()
    logs = Logs()
    processors: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        logs.sample,
        structlog.processors.add_log_level,
        TimeStamper(fmt="iso", utc=True),
        format_exc_info,
        *(
            [add_process_name, limit_length(JSONRenderer())]
            if as_json
            else [escape_controls, limit_length(_text_renderer(colours))]
        ),
    ]
    structlog.configure(
        processors=[_without_errors(processors, logs)],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        logger_factory=lambda *_: _LineLogger(logs),
    )
    if sys.stderr is not None:
        stderr.make_nonblocking()
    printed = stderr.LineBuffer(lambda line: logs.put(prefix_lines(line)))
    with contextlib.redirect_stderr(printed), forward_python_logs():
        try:
            yield logs
        finally:
            logs.close()


class _LineLogger:
    """A logger that queues rendered lines of all levels."""

    def __init__(self, logs: Logs) -> None:
        self.debug = self.info = self.warning = self.error = self.critical = logs.put


def _without_errors(processors: Sequence[Processor], logs: Logs) -> Processor:
    """Combines `processors` into one that drops and counts an event if a processor fails.

    Otherwise a value that cannot be rendered would fail a request.
    """

    def processed(logger: Any, name: str, event: Any) -> Any:
        try:
            for process in processors:
                event = process(logger, name, event)
        except structlog.DropEvent:
            raise
        except Exception as error:
            logs.count_dropped()
            raise structlog.DropEvent from error
        return event

    return processed


def _kind(level: str, event: EventDict) -> Kind:
    """Returns the kind of a line for sampling. Callers cannot choose it, so there are few kinds."""
    source = event.get("logger") or event.get("event")
    return level, str(source), str(event.get("method", "")), str(event.get("status", ""))


def _text_renderer(colours: bool) -> Processor:
    return with_prefix(ConsoleRenderer(colors=colours, exception_formatter=plain_traceback))


def _use_colours() -> bool:
    """Whether to use colours: only on a terminal, unless NO_COLOR (https://no-color.org) is set."""
    at_terminal = sys.stderr is not None and sys.stderr.isatty()
    return at_terminal and not os.environ.get("NO_COLOR")
