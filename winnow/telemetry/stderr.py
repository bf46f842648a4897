"""Standard error without Python's own file object.

That object has a lock. A thread that hangs in a write would hold it, and delay every other print
and the end of the interpreter.
"""

import io
import os
import select
import stat
import sys
from collections.abc import Callable
from typing import TextIO

from winnow.telemetry.logline import LONGEST

_STANDARD_ERROR = 2


def writer() -> Callable[[bytes], None]:
    """A function that writes all of its data to standard error.

    It blocks where standard error does, and raises OSError or ValueError if it cannot write.
    """
    stream = sys.stderr
    if stream is None:  # the process was started without one
        return _nowhere
    try:
        descriptor = os.dup(stream.fileno())
    except io.UnsupportedOperation:  # in memory
        return lambda data: _print(stream, data)
    return _Descriptor(descriptor).write


def free_native_code() -> None:
    """Lets native libraries, which write to standard error by themselves, lose lines rather than
    wait for a pipe that nobody reads. Others who hold that pipe are not touched.
    """
    try:
        if stat.S_ISFIFO(os.fstat(_STANDARD_ERROR).st_mode):
            own = os.open(f"/proc/self/fd/{_STANDARD_ERROR}", os.O_WRONLY | os.O_NONBLOCK)
            os.dup2(own, _STANDARD_ERROR)
            os.close(own)
    except OSError:  # no Linux, or nobody reads already: then a write fails, and does not wait
        return


class _Descriptor:
    """An open file to write lines to."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor, self._torn = descriptor, False

    def write(self, data: bytes) -> None:
        """Writes all of `data`. If the last write ended within a line, a line feed comes first."""
        data = b"\n" + data if self._torn else data
        while data:
            try:
                written = os.write(self._descriptor, data)
            except BlockingIOError:  # somebody made it so
                select.select([], [self._descriptor], [])
            else:
                self._torn = not data[:written].endswith(b"\n")
                data = data[written:]


def _print(stream: TextIO, data: bytes) -> None:
    stream.write(data.decode())


def _nowhere(_: bytes) -> None:
    raise OSError("there is no standard error")


class Lines(io.TextIOBase):
    """Stands in for `sys.stderr`: hands over what is printed, line by line."""

    def __init__(self, put: Callable[[str], None]) -> None:
        """`put` gets lines without their end, of bounded length."""
        self._put, self._begun = put, ""

    def writable(self) -> bool:
        """It is there to be written to."""
        return True

    def write(self, text: str) -> int:
        """Takes any piece of text."""
        *lines, begun = (self._begun + text).split("\n")
        self._begun = begun[:LONGEST]
        for line in lines:
            self._put(line[:LONGEST])
        return len(text)
