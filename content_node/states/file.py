"""Reads precomputed states of a shard from their file, one passage at a time."""

import threading
from pathlib import Path
from typing import Self

import numpy as np
import structlog
from numpy.typing import NDArray

from winnow.content_node.states.advice import states_command
from winnow.content_node.states.manifest import (
    DATA,
    STARTS,
    STATES_FILE,
    StatesManifest,
    open_states_manifest,
)
from winnow.content_node.states.passage_states import PassageStates, unpack
from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile
from winnow.files.stored_array import read_integers

_log = structlog.get_logger("content_node")
_MAX_LOGGED = 20
"""Maximum number of damaged passages that are logged, so that a damaged file fills no log."""


class StateFile:
    """Reads the states of each row. Safe to use from several threads.

    The file is not mapped into memory: access to a truncated mapped file ends the process. The file
    is many times as large as the rest of the shard, so it is not verified when it is opened.
    Instead every passage has a checksum.
    """

    def __init__(self, file: OpenFile, starts: NDArray[np.int64], width: int) -> None:
        """`starts` has the byte offset of each row's states, and the end of the last row's."""
        self._file, self._starts, self._width = file, starts, width
        self._logged: set[int] = set()
        self._lock = threading.Lock()

    @classmethod
    def open_beside(cls, directory: Path, manifest: StatesManifest) -> Self:
        """Opens the states that `manifest` describes.

        Raises:
            ArtefactError: the files are missing, or do not match the manifest.

        """
        file, starts_file = OpenFile(directory / DATA), OpenFile(directory / STARTS)
        starts_file.verify(manifest.starts_sha256, manifest.starts_bytes, advice="")
        starts = read_integers(starts_file)
        if file.size != manifest.bytes:
            raise ArtefactError(f"{file.path} has {file.size} bytes, not {manifest.bytes}")
        if [*starts[:1], *starts[-1:]] != [0, file.size] or (starts[1:] < starts[:-1]).any():
            raise ArtefactError(f"{starts_file.path} does not match {file.path}")
        return cls(file, starts, manifest.width)

    @property
    def rows(self) -> int:
        """Number of rows, including empty ones."""
        return max(len(self._starts) - 1, 0)

    @property
    def passages(self) -> int:
        """Number of passages with states."""
        return int(np.count_nonzero(np.diff(self._starts)))

    def size(self, row: int) -> int:
        """Returns the size of a row's states in bytes; 0 without states."""
        start, end = self._starts[row : row + 2].tolist()
        return int(end - start)

    def read(self, row: int) -> PassageStates | None:
        """Returns the states of a row; None without states.

        Raises:
            ArtefactError: the states are damaged.

        """
        size = self.size(row)
        return unpack(self._file.read(size, int(self._starts[row])), self._width) if size else None

    def load(self, row: int) -> PassageStates | None:
        """Returns the states of a row; None if they are missing or damaged.

        The reader computes missing states, so a damaged file costs time but no answers.
        """
        try:
            return self.read(row)
        except ArtefactError as error:
            if self._should_log(row):
                _log.warning(
                    "states are damaged, so they are computed for each question; "
                    f"{states_command(self._file.path.parent)} replaces them; at most "
                    f"{_MAX_LOGGED} passages are logged",
                    file=str(self._file.path),
                    row=row,
                    reason=str(error),
                )
            return None

    def _should_log(self, row: int) -> bool:
        """Whether to log a damaged row: once, and only for the first few rows."""
        with self._lock:
            if row in self._logged or len(self._logged) == _MAX_LOGGED:
                return False
            self._logged.add(row)
            return True


def open_states(directory: Path, generation: str, fingerprint: str) -> StateFile | None:
    """Opens the states beside a shard; None without states of this reader and generation."""
    if not fingerprint or not (directory / STATES_FILE).exists():
        return None
    try:
        manifest, manifest_file = open_states_manifest(directory)
        if (manifest.fingerprint, manifest.generation) == (fingerprint, generation):
            states = StateFile.open_beside(directory, manifest)
            if manifest_file.has_its_path:  # otherwise the files beside it may be of another reader
                return states
            raise ArtefactError("they were replaced while they were opened: restart the node")
        difference = "reader" if manifest.fingerprint != fingerprint else "generation"
        reason = f"the states are of another {difference}"
    except Exception as error:  # noqa: BLE001 (invalid content may have a valid checksum)
        reason = str(error)
    _log.warning(
        "the states beside the shard are not used, so they are computed for each question; "
        f"{states_command(directory)} replaces them",
        directory=str(directory),
        reason=reason,
    )
    return None
