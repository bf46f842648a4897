"""The states of a shard's passages on disk, read one passage at a time."""

import threading
from pathlib import Path
from typing import Self

import numpy as np
import structlog
from numpy.typing import NDArray

from winnow.content_node.states.advice import remedy
from winnow.content_node.states.manifest import (
    DATA,
    STARTS,
    STATES_FILE,
    StatesManifest,
    open_states_manifest,
)
from winnow.content_node.states.states import States, unpacked
from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile
from winnow.files.stored_array import integers

_log = structlog.get_logger("content_node")
_TOLD = 20
"""Damaged passages that are told: a whole file of them would fill the log."""


class StateFile:
    """Safe to read from several threads.

    Not mapped into memory, as nothing here is: a mapped file that somebody cuts short ends the
    process. Nor is all of it verified when it is opened, since it is many times as large as the
    rest of the shard: every passage has a checksum of its own.
    """

    def __init__(self, file: OpenFile, starts: NDArray[np.int64], width: int) -> None:
        """`starts`: where the states of each row begin, and where those of the last one end."""
        self._file, self._starts, self._width = file, starts, width
        self._told: set[int] = set()
        self._telling = threading.Lock()

    @classmethod
    def beside(cls, directory: Path, manifest: StatesManifest) -> Self:
        """The states that `manifest` is of.

        Raises:
            ArtefactError: the files are missing, or are others.

        """
        file, starts = OpenFile(directory / DATA), OpenFile(directory / STARTS)
        starts.verify(manifest.starts_sha256, manifest.starts_bytes, mend="")
        ends = integers(starts)
        if file.size != manifest.bytes:
            raise ArtefactError(f"{file.path} has {file.size} bytes, not {manifest.bytes}")
        if [*ends[:1], *ends[-1:]] != [0, file.size] or (ends[1:] < ends[:-1]).any():
            raise ArtefactError(f"{starts.path} does not lead through {file.path}")
        return cls(file, ends, manifest.width)

    @property
    def rows(self) -> int:
        """How many rows it is of, also those that hold no passage."""
        return max(len(self._starts) - 1, 0)

    @property
    def held(self) -> int:
        """How many rows have states."""
        return int(np.count_nonzero(np.diff(self._starts)))

    def size(self, row: int) -> int:
        """The bytes of the states of a row; 0 if there are none."""
        start, end = self._starts[row : row + 2].tolist()
        return int(end - start)

    def read(self, row: int) -> States | None:
        """The states of a row; None if there are none.

        Raises:
            ArtefactError: they are damaged.

        """
        start, end = self._starts[row : row + 2].tolist()
        return unpacked(self._file.read(end - start, start), self._width) if end > start else None

    def load(self, row: int) -> States | None:
        """The states of a passage; None if there are none, or they are damaged.

        What is lacking is computed instead, so that no answer is lost with it.
        """
        try:
            return self.read(row)
        except ArtefactError as error:
            if self._is_new(row):
                _log.warning(
                    "states are damaged, and are computed for each question instead; "
                    f"{remedy(self._file.path.parent)} makes them anew; at most {_TOLD} such "
                    "passages are told",
                    file=str(self._file.path),
                    row=row,
                    reason=str(error),
                )
            return None

    def _is_new(self, row: int) -> bool:
        """Whether damage of this row is to be told: once, and not of too many."""
        with self._telling:
            if row in self._told or len(self._told) == _TOLD:
                return False
            self._told.add(row)
            return True


def open_states(directory: Path, generation: str, fingerprint: str) -> StateFile | None:
    """The states beside a shard; None if there are none of this reader and this generation."""
    if not fingerprint or not (directory / STATES_FILE).exists():
        return None
    try:
        manifest, named = open_states_manifest(directory)
        if (manifest.fingerprint, manifest.generation) == (fingerprint, generation):
            states = StateFile.beside(directory, manifest)
            if named.named:  # else the files beside it may be of another reader
                return states
            raise ArtefactError("they were made anew just now: start the node again")
        what = "reader" if manifest.fingerprint != fingerprint else "generation"
        reason = f"they are of another {what}"
    except Exception as error:  # noqa: BLE001 (a checksum can be made for any nonsense)
        reason = str(error)
    _log.warning(
        "the states beside the shard are not used, and computed for each question; "
        f"{remedy(directory)} makes them anew",
        directory=str(directory),
        reason=reason,
    )
    return None
