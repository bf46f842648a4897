"""What a cluster says of itself on standard error, which may be full, gone, or read by nobody."""

import contextlib
from collections.abc import Callable, Iterator

from winnow.telemetry import stderr
from winnow.telemetry.logqueue import LogQueue

_MOST_WAITING = 100
_PATIENCE = 1.0
"""Seconds that the last words get to be written."""


@contextlib.contextmanager
def saying() -> Iterator[Callable[[str], None]]:
    """Gives what says a text, in lines of its own. It neither waits nor fails: a cluster does not
    end because nobody hears what became of a part of it.
    """
    texts = LogQueue(stderr.writer(), _MOST_WAITING)
    try:
        yield texts.put
    finally:
        texts.close(_PATIENCE)
