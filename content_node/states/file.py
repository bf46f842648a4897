"""Reads precomputed data of a shard from its file."""

import threading
from pathlib import Path
from typing import Self

import numpy as np
import structlog
from numpy.typing import NDArray

from winnow.content_node.states.advice import states_command
from winnow.content_node.states.manifest import StatesManifest, open_states_manifest
from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile
from winnow.files.stored_array import read_integers
from winnow.reading.passage_states import PassageStates, unpack
from winnow.reading.states_kind import CHECKSUM_BYTES, READER_STATES, StatesKind

_log = structlog.get_logger("content_node")
_MAX_LOGGED = 20
"""Maximum number of damaged passages that are logged, so that a damaged file fills no log."""


_WHOLE_FILE = -1
"""Stands for all rows among those that were logged."""


class StateFile:
    """Reads the data of each row. Safe to use from several threads.

    The file is not mapped into memory: access to a truncated mapped file ends the process. States
    of readers are many times as large as the rest of the shard, so their file is not verified when
    it is opened. Instead every passage has a checksum.
    """

    def __init__(
        self,
        file: OpenFile,
        starts: NDArray[np.int64],
        width: int,
        kind: StatesKind = READER_STATES,
        *,
        stored: StatesKind | None = None,
    ) -> None:
        """`starts` has the byte offset of each row's data, and the end of the last row's.

        `stored` is the kind in the format of the file. By default it is `kind`.
        """
        self._file, self._starts, self.width, self._kind = file, starts, width, kind
        self._stored = stored or kind
        self._logged: set[int] = set()
        self._lock = threading.Lock()

    @classmethod
    def open_beside(
        cls, directory: Path, manifest: StatesManifest, kind: StatesKind = READER_STATES
    ) -> Self:
        """Opens the data that `manifest` describes.

        Raises:
            ArtefactError: the files are missing, or do not match the manifest.

        """
        file, starts_file = OpenFile(directory / kind.data), OpenFile(directory / kind.starts_file)
        starts_file.verify(manifest.starts_sha256, manifest.starts_bytes, advice="")
        starts = read_integers(starts_file)
        if file.size != manifest.bytes:
            raise ArtefactError(f"{file.path} has {file.size} bytes, not {manifest.bytes}")
        if [*starts[:1], *starts[-1:]] != [0, file.size] or (starts[1:] < starts[:-1]).any():
            raise ArtefactError(f"{starts_file.path} does not match {file.path}")
        return cls(file, starts, manifest.width, kind, stored=kind.in_format(manifest.format))

    @property
    def rows(self) -> int:
        """Number of rows, including empty ones."""
        return max(len(self._starts) - 1, 0)

    @property
    def passages(self) -> int:
        """Number of passages with data."""
        return int(np.count_nonzero(np.diff(self._starts)))

    def size(self, row: int) -> int:
        """Returns the size of the result of `packed` in bytes; 0 without data."""
        size = self._stored_size(row)
        if not size or self._stored is self._kind:
            return size
        return self._kind.packed_size(self._stored.count_tokens(size, self.width), self.width)

    def packed(self, row: int) -> bytes:
        """Returns the data of a row in the format that is written today; empty without data.

        Raises:
            ArtefactError: the data is damaged.

        """
        data = self._read(row)
        if not data:
            return data
        if self._stored is not self._kind:
            return unpack(data, self.width, self._stored).packed()
        self._kind.check(data, self.width)
        return data

    def _stored_size(self, row: int) -> int:
        start, end = self._starts[row : row + 2].tolist()
        return int(end - start)

    def _read(self, row: int) -> bytes:
        """Returns the unchecked data of a row in the format of the file; empty without data."""
        size = self._stored_size(row)
        return self._file.read(size, int(self._starts[row])) if size else b""

    def has_rows(self, rows: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Returns whether each of `rows` has data, [rows]."""
        known = rows < self.rows
        own = np.where(known, rows, 0)
        has: NDArray[np.bool_] = known & (self._starts[own + 1] > self._starts[own])
        return has

    def read_rows(self, rows: NDArray[np.int64]) -> tuple[bytes, NDArray[np.int64]]:
        """Returns the data of rows that have some, joined without checksums, and its sizes in
        bytes, [rows]. Their checksums are not checked.

        Raises:
            ArtefactError: the file was changed, or cannot be read.

        """
        starts = self._starts[rows]
        sizes = self._starts[rows + 1] - starts - CHECKSUM_BYTES
        data = self._file.read_each(sizes.tolist(), starts.tolist())
        self._file.check()
        return data, sizes

    def log_unreadable(self, error: ArtefactError) -> None:
        """Logs an error of `read_rows`, once."""
        if self._should_log(_WHOLE_FILE):
            _log.error(
                f"the {self._kind.noun} of the shard cannot be read, {self._kind.loss}; "
                f"{states_command(self._file.path.parent, kind=self._kind)} replaces them",
                reason=str(error),
            )

    def verify(self, sha256: str) -> None:
        """Verifies the whole file. Raises ArtefactError if it is damaged."""
        self._file.verify(sha256, self._file.size, advice="")

    def read(self, row: int) -> PassageStates | None:
        """Returns the reader's states of a row; None without states.

        Raises:
            ArtefactError: the states are damaged.

        """
        data = self._read(row)
        return unpack(data, self.width, self._stored) if data else None

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


def open_states(
    directory: Path,
    generation: str,
    fingerprint: str,
    kind: StatesKind = READER_STATES,
    *,
    verify_all: bool = True,
) -> StateFile | None:
    """Opens the data of a kind beside a shard; None without data of this model and generation.

    Token vectors are verified, because `StateFile.read_rows` does not check them. Without
    `verify_all` they are not, for callers that read them by `StateFile.packed`.
    """
    if not fingerprint or not (directory / kind.manifest).exists():
        return None
    try:
        manifest, manifest_file = open_states_manifest(directory, kind)
        if (manifest.fingerprint, manifest.generation) == (fingerprint, generation):
            states = StateFile.open_beside(directory, manifest, kind)
            if kind.verified and verify_all:
                states.verify(manifest.sha256)
            if manifest_file.has_its_path:  # otherwise the files beside it may be of another model
                return states
            raise ArtefactError(
                f"the {kind.noun} were replaced while they were opened: restart the node"
            )
        difference = kind.model if manifest.fingerprint != fingerprint else "generation"
        reason = f"the {kind.noun} are of another {difference}"
    except Exception as error:  # noqa: BLE001 (invalid content may have a valid checksum)
        reason = str(error)
    _log.warning(
        f"the {kind.noun} beside the shard are not used, {kind.loss}; "
        f"{states_command(directory, kind=kind)} replaces them",
        directory=str(directory),
        reason=reason,
    )
    return None
