"""Reads slices of an array from a `.npy` file.

The file is not mapped into memory, because truncating a mapped file kills the process with a
signal. Reads from the page cache are as fast, and report truncation as an error.
"""

import io
import threading
from typing import Any

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile

_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}
_PARSING = threading.Lock()
"""Held while a header is parsed.

Two threads that parse literals at once may both fail with a SystemError
(https://github.com/python/cpython/issues/106905, fixed in Python 3.11.8 and 3.12.2).
"""


class StoredArray:
    """A one-dimensional array of unsigned integers in a file. Thread-safe."""

    def __init__(self, file: OpenFile) -> None:
        """Raises ArtefactError unless the file is a one-dimensional array of unsigned integers."""
        self._file = file
        shape, self._type, self._start = read_header(file)
        try:
            (self._length,) = shape
        except ValueError as error:
            raise ArtefactError(f"{file.path} holds no array of one dimension: {error}") from error
        if self._type.kind != "u":
            raise ArtefactError(f"{file.path} holds {self._type}, not unsigned integers")
        if self._start + self._length * self._type.itemsize != file.size:
            raise ArtefactError(f"{file.path} does not end where its {self._length} values end")

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, span: slice) -> NDArray[np.unsignedinteger]:
        """Reads the values of a slice; raises ArtefactError if that fails."""
        size = self._type.itemsize
        data = self._file.read((span.stop - span.start) * size, self._start + span.start * size)
        return np.frombuffer(data, self._type)

    def read_slices(
        self, begins: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> NDArray[np.unsignedinteger]:
        """Reads and joins the slices `begins[i]:ends[i]`; raises ArtefactError if that fails."""
        size = self._type.itemsize
        starts, counts = self._start + begins * size, (ends - begins) * size
        return np.frombuffer(self._file.read_each(counts.tolist(), starts.tolist()), self._type)

    def check(self) -> None:
        """Raises ArtefactError if the file was written to since it was opened."""
        self._file.check()


def read_header(file: OpenFile) -> tuple[tuple[int, ...], "np.dtype[Any]", int]:
    """Reads the shape and the type of an array, and the byte at which its values begin.

    Raises ArtefactError if the file cannot be read, or holds no array.
    """
    try:
        with file.reader() as reader:
            shape, number_type = _read_header(reader)
            return shape, number_type, reader.tell()
    except (OSError, ValueError, KeyError) as error:
        raise ArtefactError(f"{file.path} holds no array: {error}") from error


def read_integers(file: OpenFile) -> NDArray[np.int64]:
    """Reads a one-dimensional array of integers into memory.

    Raises ArtefactError if the file cannot be read, or has other content.
    """
    try:
        with file.reader() as reader:
            shape, number_type = _read_header(reader)
            if len(shape) != 1 or number_type.kind not in "iu":
                raise ArtefactError(f"{file.path} is not a one-dimensional array of integers")
            values = np.frombuffer(reader.read(), number_type)
    except (OSError, ValueError, KeyError, MemoryError) as error:
        raise ArtefactError(f"{file.path} cannot be loaded: {error}") from error
    if values.shape != shape:
        raise ArtefactError(f"{file.path} does not end where its {shape[0]} values end")
    return values.astype(np.int64)


def _read_header(reader: io.BufferedReader) -> tuple[tuple[int, ...], "np.dtype[Any]"]:
    """Reads the shape and the type of an array; raises KeyError, OSError or ValueError."""
    with _PARSING:
        shape, _, number_type = _HEADERS[npy.read_magic(reader)](reader)
    return shape, number_type
