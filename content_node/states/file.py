"""The states of a shard's passages on disk, read one passage at a time."""

from pathlib import Path

import structlog

from content_node.shard.stored_array import integers
from content_node.states.manifest import DATA, STARTS, STATES_FILE, read_states_manifest
from content_node.states.states import States, unpacked
from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile

_log = structlog.get_logger("content_node")


class StateFile:
    """Safe to read from several threads.

    Not mapped into memory, as nothing here is: a mapped file that somebody cuts short ends the
    process. Nor is all of it verified when it is opened, since it is many times as large as the
    rest of the shard: every passage has a checksum of its own.
    """

    def __init__(self, directory: Path, width: int) -> None:
        """Raises ArtefactError if the files are missing or do not fit each other."""
        self._file, self._width = OpenFile(directory / DATA), width
        self._starts = integers(OpenFile(directory / STARTS))
        end = int(self._starts[-1]) if len(self._starts) else 0
        if end != self._file.size or (self._starts[1:] < self._starts[:-1]).any():
            raise ArtefactError(f"{self._file.path} does not end where its last passage ends")

    @property
    def rows(self) -> int:
        """How many rows it is of, also those that hold no passage."""
        return max(len(self._starts) - 1, 0)

    def packed(self, row: int) -> bytes:
        """The states of a row as they lie there; empty if there are none."""
        start, end = self._starts[row : row + 2].tolist()
        return self._file.read(end - start, start) if end > start else b""

    def load(self, row: int) -> States | None:
        """The states of a passage; None if there are none, or they are damaged.

        What is lacking is computed instead, so that no answer is lost with it.
        """
        try:
            data = self.packed(row)
            return unpacked(data, self._width) if data else None
        except ArtefactError as error:
            _log.warning(
                "states are damaged, and are computed for each question instead",
                file=str(self._file.path),
                row=row,
                reason=str(error),
            )
            return None


def open_states(directory: Path, generation: str, fingerprint: str) -> StateFile | None:
    """The states beside a shard; None if there are none of this reader and this generation."""
    if not fingerprint or not (directory / STATES_FILE).exists():
        return None
    try:
        manifest = read_states_manifest(directory)
        if (manifest.fingerprint, manifest.generation) == (fingerprint, generation):
            return StateFile(directory, manifest.width)
        what = "reader" if manifest.fingerprint != fingerprint else "generation"
        reason = f"they are of another {what}"
    except ArtefactError as error:
        reason = str(error)
    _log.warning(
        "the states beside the shard are not used, and computed for each question; "
        "`winnow index states` makes them anew",
        directory=str(directory),
        reason=reason,
    )
    return None
