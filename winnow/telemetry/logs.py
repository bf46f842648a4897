"""Structured logs on standard error: JSON lines for programs, text for people."""

import logging
import os
import sys

import structlog
from structlog.dev import ConsoleRenderer, plain_traceback
from structlog.processors import JSONRenderer, TimeStamper, format_exc_info
from structlog.typing import Processor


def configure(level: str, as_json: bool = True) -> None:
    """Sets up structlog for a process. `as_json` off is for people at a terminal."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            TimeStamper(fmt="iso", utc=True),
            *(_json() if as_json else _text()),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelName(level.upper())),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def _json() -> list[Processor]:
    return [format_exc_info, JSONRenderer()]


def _text() -> list[Processor]:
    """Colours only at a terminal, and not if NO_COLOR (https://no-color.org) forbids them."""
    colours = sys.stderr.isatty() and not os.environ.get("NO_COLOR")
    return [ConsoleRenderer(colors=colours, exception_formatter=plain_traceback)]
