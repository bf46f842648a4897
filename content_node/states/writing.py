"""Computes the states of a shard's passages and puts them beside it.

Interrupted at any moment, the same call goes on where it was: what is on disk is whole passages.
"""

import fcntl
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from content_node.reader.lower import Lower
from content_node.shard.manifest import read_shard_manifest
from content_node.shard.saving import save_array
from content_node.shard.store import PassageStore
from content_node.states.file import StateFile
from content_node.states.known import Known, Nothing
from content_node.states.manifest import (
    DATA,
    STARTS,
    STATES_FILE,
    StatesManifest,
    read_states_manifest,
    write_states_manifest,
)
from content_node.states.states import packed_size
from winnow.errors import ArtefactError, UnavailableError
from winnow.files.checksum import sha256
from winnow.files.durable import sync_file
from winnow.files.opened import OpenFile

_CHUNK = 256
"""Passages between two writes: what an interruption may lose."""
_CONNECTIONS = 4
Started = Callable[[int, int], None]
Advance = Callable[[int], None]


class StatesWriter:
    """Writes the states of one shard."""

    def __init__(self, directory: Path, lower: Lower, known: Known | None = None) -> None:
        """What is `known` is copied. Raises ArtefactError if `directory` holds no shard."""
        self._directory, self._lower, self._known = directory, lower, known or Nothing()
        self._manifest = read_shard_manifest(directory)
        self._store = PassageStore(OpenFile(directory / self._manifest.store), _CONNECTIONS)
        self._wanted = lower.fingerprint, self._manifest.generation
        self._partial = directory / f"states-{'-'.join(self._wanted)}.partial"

    def write(self, threads: int, started: Started, advance: Advance) -> StatesManifest:
        """Computes what is lacking. `started` is told how many passages there are, and how many
        of them are done; `advance` of those that are done since.

        Raises:
            ArtefactError: a passage cannot be read.
            UnavailableError: another process is at it.
            OSError: the disk is full, say; what was written is kept.

        """
        with self._partial.open("ab") as file:
            self._expect_alone(file)
            if (found := self._found()) is not None:
                self._partial.unlink()
                started(self._manifest.passages, self._manifest.passages)
                return found
            self._remove_others()
            rows, sizes = self._rows()
            starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.uint64)
            left = rows[np.searchsorted(rows, self._resume(starts)) :]
            started(len(rows), len(rows) - len(left))
            self._append(file, left, threads, advance)
            return self._publish(starts, sizes)

    def _expect_alone(self, file: IO[bytes]) -> None:
        """Two that write to one file would spoil it; the kernel frees the lock with the process."""
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise UnavailableError(
                f"another process is computing the states of {self._directory}: wait for it"
            ) from error

    def _append(
        self, file: IO[bytes], left: NDArray[np.int64], threads: int, advance: Advance
    ) -> None:
        with ThreadPoolExecutor(threads, "states") as pool:
            for start in range(0, len(left), _CHUNK):
                chunk = left[start : start + _CHUNK].tolist()
                file.writelines(pool.map(self._packed, chunk, self._store.named(chunk)))
                advance(len(chunk))
        file.flush()

    def _packed(self, row: int, name: tuple[str, int]) -> bytes:
        return self._known.packed(*name) or self._computed(row)

    def _computed(self, row: int) -> bytes:
        return self._lower.states(self._store.load([row])[0]).packed()

    def _found(self) -> StatesManifest | None:
        """What is there already, if it is whole to the last bit."""
        try:
            found = read_states_manifest(self._directory)
            if (found.fingerprint, found.generation) != self._wanted:
                return None
            OpenFile(self._directory / DATA).verify(found.sha256, found.bytes)
            StateFile(self._directory, found.width)
        except ArtefactError:
            return None
        return found

    def _remove_others(self) -> None:
        """What another reader made, or an interrupted call for it; and what is damaged."""
        for path in self._directory.glob("states-*.partial"):
            if path != self._partial:
                path.unlink()
        for name in (STATES_FILE, DATA, STARTS):
            (self._directory / name).unlink(missing_ok=True)

    def _rows(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows that hold a passage, and the bytes of the states of every row."""
        rows, sizes = self._store.numbers(), np.zeros(self._manifest.rows, np.int64)
        for row in rows.tolist():
            tokens = self._lower.tokens(self._store.load([row])[0])
            sizes[row] = packed_size(tokens, self._lower.width)
        return rows, sizes

    def _resume(self, starts: NDArray[np.uint64]) -> int:
        """The first row that is not on disk whole; half a passage is cut off."""
        written = self._partial.stat().st_size if self._partial.exists() else 0
        row = int(np.searchsorted(starts, written, side="right")) - 1
        if written:
            os.truncate(self._partial, int(starts[row]))
        return row

    def _publish(self, starts: NDArray[np.uint64], sizes: NDArray[np.int64]) -> StatesManifest:
        sync_file(self._partial)
        width, held = self._lower.width, sizes[sizes > 0]
        each = packed_size(1, width) - packed_size(0, width)
        manifest = StatesManifest(
            fingerprint=self._lower.fingerprint,
            generation=self._manifest.generation,
            width=width,
            tokens=int((held - packed_size(0, width)).sum()) // each,
            bytes=self._partial.stat().st_size,
            sha256=sha256(self._partial),
        )
        save_array(starts, self._directory / STARTS)
        self._partial.rename(self._directory / DATA)
        write_states_manifest(self._directory, manifest)
        return manifest
