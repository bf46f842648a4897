"""Writes to standard error without Python's own file object, `sys.stderr`.

`sys.stderr` has a lock. A thread that hangs in a write would hold the lock, and block every other
print and the exit of the interpreter.
"""

import io
import os
import select
import stat
import sys
from collections.abc import Callable
from typing import TextIO

from winnow.telemetry.logline import MAX_LINE_LENGTH

_STANDARD_ERROR = 2


def open_writer() -> Callable[[bytes], None]:
    """Returns a function that writes bytes to standard error.

    The function blocks if standard error blocks. It raises OSError or ValueError if it cannot
    write.
    """
    stream = sys.stderr
    if stream is None:  # the process was started without standard error
        return _raise_no_stderr
    try:
        descriptor = os.dup(stream.fileno())
    except io.UnsupportedOperation:  # `stream` is in memory
        return lambda data: _write_text(stream, data)
    return _DescriptorWriter(descriptor).write


def make_nonblocking() -> None:
    """Makes standard error non-blocking if it is a pipe.

    Native libraries write to standard error directly. They must lose lines rather than wait for a
    pipe that is not read. The pipe is reopened, so that other processes with the same pipe are not
    affected.
    """
    try:
        if stat.S_ISFIFO(os.fstat(_STANDARD_ERROR).st_mode):
            nonblocking = os.open(f"/proc/self/fd/{_STANDARD_ERROR}", os.O_WRONLY | os.O_NONBLOCK)
            os.dup2(nonblocking, _STANDARD_ERROR)
            os.close(nonblocking)
    except OSError:
        # not on Linux, or the reader has closed the pipe, so that writes fail without waiting
        return


class _DescriptorWriter:
    """Writes lines to a file descriptor."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._in_line = descriptor, False

    def write(self, data: bytes) -> None:
        """Writes all of `data`. If an earlier write failed within a line, first ends that line."""
        data = b"\n" + data if self._in_line else data
        while data:
            try:
                written = os.write(self._descriptor, data)
            except BlockingIOError:  # another process has made the descriptor non-blocking
                select.select([], [self._descriptor], [])
            else:
                self._in_line = not data[:written].endswith(b"\n")
                data = data[written:]


def _write_text(stream: TextIO, data: bytes) -> None:
    stream.write(data.decode())


def _raise_no_stderr(_: bytes) -> None:
    raise OSError("there is no standard error")


class LineBuffer(io.TextIOBase):
    """A replacement for `sys.stderr` that passes printed text to a function, line by line."""

    def __init__(self, put: Callable[[str], None]) -> None:
        """`put` is called with each line, without its line feed and cut to `MAX_LINE_LENGTH`."""
        self._put, self._unfinished = put, ""

    def writable(self) -> bool:
        """Returns True."""
        return True

    def write(self, text: str) -> int:
        """Passes complete lines to `put`, and keeps the start of an unfinished line."""
        *lines, unfinished = (self._unfinished + text).split("\n")
        self._unfinished = unfinished[:MAX_LINE_LENGTH]
        for line in lines:
            self._put(line[:MAX_LINE_LENGTH])
        return len(text)
