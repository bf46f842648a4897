"""The file of a shard's precomputed states, read one passage at a time."""

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
from winnow.content_node.states.passage_states import PassageStates, unpacked
from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile
from winnow.files.stored_array import read_integers

_log = structlog.get_logger("content_node")
_MOST_LOGGED = 20
"""Damaged passages that are logged: a whole file of them would fill the log."""


class StateFile:
    """The states of each row. Safe to read from several threads.

    The file is not mapped into memory: a mapped file that is cut short ends the process. It is many
    times as large as the rest of the shard, so it is not verified when it is opened. Instead every
    passage has its own checksum.
    """

    def __init__(self, file: OpenFile, starts: NDArray[np.int64], width: int) -> None:
        """`starts` says where the states of each row begin, and where the last ones end."""
        self._file, self._starts, self._width = file, starts, width
        self._logged: set[int] = set()
        self._lock = threading.Lock()

    @classmethod
    def beside(cls, directory: Path, manifest: StatesManifest) -> Self:
        """Opens the states that `manifest` describes.

        Raises:
            ArtefactError: the files are missing, or do not match the manifest.

        """
        file, starts = OpenFile(directory / DATA), OpenFile(directory / STARTS)
        starts.verify(manifest.starts_sha256, manifest.starts_bytes, advice="")
        ends = read_integers(starts)
        if file.size != manifest.bytes:
            raise ArtefactError(f"{file.path} has {file.size} bytes, not {manifest.bytes}")
        if [*ends[:1], *ends[-1:]] != [0, file.size] or (ends[1:] < ends[:-1]).any():
            raise ArtefactError(f"{starts.path} does not match {file.path}")
        return cls(file, ends, manifest.width)

    @property
    def rows(self) -> int:
        """Number of rows, including empty ones."""
        return max(len(self._starts) - 1, 0)

    @property
    def held(self) -> int:
        """Number of rows with states."""
        return int(np.count_nonzero(np.diff(self._starts)))

    def size(self, row: int) -> int:
        """Returns the size of a row's states in bytes; 0 if there are none."""
        start, end = self._starts[row : row + 2].tolist()
        return int(end - start)

    def read(self, row: int) -> PassageStates | None:
        """Returns the states of a row; None if there are none.

        Raises:
            ArtefactError: the states are damaged.

        """
        start, end = self._starts[row : row + 2].tolist()
        return unpacked(self._file.read(end - start, start), self._width) if end > start else None

    def load(self, row: int) -> PassageStates | None:
        """Returns the states of a row; None if they are missing or damaged.

        The reader computes missing states, so a damaged file costs time and no answer.
        """
        try:
            return self.read(row)
        except ArtefactError as error:
            if self._is_new(row):
                _log.warning(
                    "states are damaged and computed for each question instead; "
                    f"{remedy(self._file.path.parent)} replaces them; at most {_MOST_LOGGED} such "
                    "passages are logged",
                    file=str(self._file.path),
                    row=row,
                    reason=str(error),
                )
            return None

    def _is_new(self, row: int) -> bool:
        """Whether to log the damage of a row: once, and only of the first few rows."""
        with self._lock:
            if row in self._logged or len(self._logged) == _MOST_LOGGED:
                return False
            self._logged.add(row)
            return True


def open_states(directory: Path, generation: str, fingerprint: str) -> StateFile | None:
    """Opens the states beside a shard; None without states of this reader and generation."""
    if not fingerprint or not (directory / STATES_FILE).exists():
        return None
    try:
        manifest, named = open_states_manifest(directory)
        if (manifest.fingerprint, manifest.generation) == (fingerprint, generation):
            states = StateFile.beside(directory, manifest)
            if named.has_its_path:  # else the files beside it may be of another reader
                return states
            raise ArtefactError("they were replaced just now: start the node again")
        what = "reader" if manifest.fingerprint != fingerprint else "generation"
        reason = f"the states are of another {what}"
    except Exception as error:  # noqa: BLE001 (a checksum can be made for any nonsense)
        reason = str(error)
    _log.warning(
        "the states beside the shard are not used and computed for each question instead; "
        f"{remedy(directory)} replaces them",
        directory=str(directory),
        reason=reason,
    )
    return None
