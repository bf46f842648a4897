"""Forwards the records of Python's `logging` and `warnings` to the structured log.

By default, both write to standard error synchronously, which may block.
"""

import contextlib
import logging
import warnings
from collections.abc import Iterator
from typing import TextIO

import structlog

_log = structlog.get_logger("python")


class _ForwardingHandler(logging.Handler):
    """A handler that forwards records to structlog."""

    def emit(self, record: logging.LogRecord) -> None:
        """Logs a record; never raises."""
        try:
            message = record.getMessage()
        except Exception as error:  # noqa: BLE001 (the arguments do not fit the message)
            message = f"{record.msg} ({error!r})"
        level = min(max(record.levelno // 10 * 10, logging.DEBUG), logging.CRITICAL)
        _log.log(level, message, logger=record.name, exc_info=record.exc_info)


@contextlib.contextmanager
def forward_python_logs() -> Iterator[None]:
    """Within the context, forwards warnings, and log records of level WARNING and above."""
    root, forwarding = logging.getLogger(), _ForwardingHandler()
    others, raising, level = root.handlers[:], logging.raiseExceptions, root.level
    root.handlers[:] = [forwarding]
    root.setLevel(logging.WARNING)  # libraries may have changed it
    logging.raiseExceptions = False
    showing = warnings.showwarning
    # `logging.captureWarnings` would have no effect if it was called before
    warnings.showwarning = _log_warning
    try:
        yield
    finally:
        warnings.showwarning = showing
        logging.raiseExceptions = raising
        root.setLevel(level)
        root.handlers[:] = others


def _log_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,  # noqa: ARG001 (warnings may give one)
    line: str | None = None,
) -> None:
    text = warnings.formatwarning(message, category, filename, lineno, line)
    logging.getLogger("py.warnings").warning("%s", text)
