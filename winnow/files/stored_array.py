"""An array in a `.npy` file, read as it is asked for.

Not mapped into memory: a mapped file that somebody cuts short ends the process by a signal. Reading
the kernel's copy takes as long, and its end is an error that can be told.
"""

import numpy as np
from numpy.lib import format as npy
from numpy.typing import NDArray

from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile

_HEADERS = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}


class StoredArray:
    """Unsigned integers, one after the other. Safe to read from several threads."""

    def __init__(self, file: OpenFile) -> None:
        """Raises ArtefactError if the file does not hold such an array."""
        self._file = file
        try:
            with file.reader() as reader:
                shape, _, self._type = _HEADERS[npy.read_magic(reader)](reader)
                self._start = reader.tell()
            (self._length,) = shape
        except (OSError, ValueError, KeyError) as error:
            raise ArtefactError(f"{file.path} holds no array of one dimension: {error}") from error
        if self._type.kind != "u":
            raise ArtefactError(f"{file.path} holds {self._type}, not unsigned integers")
        if self._start + self._length * self._type.itemsize != file.size:
            raise ArtefactError(f"{file.path} does not end where its {self._length} values end")

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, place: slice) -> NDArray[np.unsignedinteger]:
        """Values from `place.start` up to `place.stop`; raises ArtefactError as `OpenFile.read`."""
        size = self._type.itemsize
        data = self._file.read((place.stop - place.start) * size, self._start + place.start * size)
        return np.frombuffer(data, self._type)

    def check(self) -> None:
        """Raises ArtefactError if the file was written to since it was opened."""
        self._file.check()


def integers(file: OpenFile) -> NDArray[np.int64]:
    """All of an array of integers, in memory. Raises ArtefactError if the file cannot be read, or
    holds something else.
    """
    try:
        with file.reader() as reader:
            values = np.load(reader, allow_pickle=False)
    except (OSError, ValueError, EOFError, MemoryError) as error:
        raise ArtefactError(f"{file.path} cannot be loaded: {error}") from error
    if not isinstance(values, np.ndarray) or values.ndim != 1 or values.dtype.kind not in "iu":
        raise ArtefactError(f"{file.path} does not hold a row of integers")
    return values.astype(np.int64, copy=False)
