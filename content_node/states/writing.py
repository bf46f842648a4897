"""Computes the states of a shard's passages and writes them beside it.

An interrupted call can be repeated, and resumes: complete passages on disk are kept. Only if the
machine goes down while the files are renamed, all states are computed again.
"""

import contextlib
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.reader.lower_layers import LowerLayers
from winnow.content_node.shard.manifest import read_shard_manifest
from winnow.content_node.shard.rows import RowNumbers
from winnow.content_node.shard.saving import save_array
from winnow.content_node.shard.store import PassageStore
from winnow.content_node.states.file import StateFile
from winnow.content_node.states.manifest import (
    DATA,
    STARTS,
    STATES_FILE,
    StatesManifest,
    read_states_manifest,
    write_states_manifest,
)
from winnow.content_node.states.passage_states import packed_size, unpacked
from winnow.content_node.states.reusable_states import GenerationStates
from winnow.errors import ArtefactError
from winnow.files.durable import sync_directory, sync_file
from winnow.files.lock import locked
from winnow.files.opened import OpenFile, sha256

LOCK = "states.lock"
_PARTIAL, _PARTIAL_STARTS = "states-*.partial", "states-*.partial.npy"
"""Unfinished states; the names hold the reader and the generation."""
_CHUNK = 256
"""Passages between two writes, which an interruption may lose."""
_CONNECTIONS = 4
Started = Callable[[int, int], None]
OnCopied = Callable[[int], None]


class StatesWriter:
    """Writes the states of one shard."""

    def __init__(
        self, directory: Path, lower: LowerLayers, known: Sequence[GenerationStates] = ()
    ) -> None:
        """States in `known` are copied. Raises ArtefactError if `directory` holds no shard."""
        self.directory, self._lower, self._known = directory, lower, known
        self._manifest = read_shard_manifest(directory)
        self._store = PassageStore(OpenFile(directory / self._manifest.store), _CONNECTIONS)
        self._wanted = lower.fingerprint, self._manifest.generation
        self._partial = directory / _PARTIAL.replace("*", "-".join(self._wanted))
        self._starts = directory / _PARTIAL_STARTS.replace("*", "-".join(self._wanted))
        self._made: StateFile | None = None

    @property
    def known(self) -> Sequence[GenerationStates]:
        """The states that are known after `write`, even if the directory is gone since."""
        return [GenerationStates(self._store, self._made)] if self._made else self._known

    @property
    def lacking(self) -> int:
        """Number of passages that `write` left without states."""
        return self._manifest.passages - self._made.held if self._made else self._manifest.passages

    def write(
        self, threads: int, started: Started, advance: OnCopied, most: int | None = None
    ) -> StatesManifest:
        """Computes missing states. `started` gets the number of all passages and of finished ones;
        `advance` gets the number of passages finished since.

        `most` limits the passages that are computed, to the newest ones. Other passages get no
        states unless these are known.

        Raises:
            ArtefactError: a passage cannot be read, or the reader's states differ from its bundle's
                description.
            UnavailableError: another process is writing states.
            OSError: a file cannot be written, for example on a full disk; finished passages are
                kept.

        """
        if (found := self._found()) is None:
            busy = f"another process is computing the states of {self.directory}: wait for it"
            with locked(self.directory / LOCK, busy):
                # the process that held the lock may have finished them just now
                found = self._found()
                if found is None:
                    return self._written(threads, started, advance, most)
        started(self._manifest.passages, self._manifest.passages)
        return found

    def _written(
        self, threads: int, started: Started, advance: OnCopied, most: int | None
    ) -> StatesManifest:
        self._known = [*self._known, *self._undamaged()]
        rows, sizes = self._rows()
        if most is not None:
            left_out = self._unknown(rows, sizes)
            left_out = left_out[: max(len(left_out) - most, 0)]
            sizes[left_out] = 0
            rows = np.setdiff1d(rows, left_out)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        with self._partial.open("ab"):
            file = OpenFile(self._partial)  # stays open, even if a merge removes it
        left = rows[self._done(file, rows, starts) :]
        started(len(rows), len(rows) - len(left))
        self._append(left, sizes, threads, advance)
        self._made = StateFile(file, starts, self._lower.width)
        return self._publish(starts, sizes)

    def _append(
        self, left: RowNumbers, sizes: NDArray[np.int64], threads: int, advance: OnCopied
    ) -> None:
        with self._partial.open("ab") as file, ThreadPoolExecutor(threads, "states") as pool:
            for start in range(0, len(left), _CHUNK):
                chunk = left[start : start + _CHUNK]
                each = (
                    chunk.tolist(),
                    sizes[chunk].tolist(),
                    self._store.ids_and_sequences(chunk.tolist()),
                )
                file.writelines(pool.map(self._packed, *each))
                advance(len(chunk))

    def _packed(self, row: int, size: int, name: tuple[str, int]) -> bytes:
        data = next(filter(None, (known.packed(*name) for known in self._known)), b"")
        if len(data) != size:  # unknown, or prepared in another way
            data = self._lower.states(self._store.load([row])[0]).packed()
        if len(data) != size:
            raise ArtefactError(
                f"the reader's lower layers do not give states of {self._lower.width} values, as "
                "its bundle says"
            )
        return data

    def _unknown(self, rows: RowNumbers, sizes: NDArray[np.int64]) -> RowNumbers:
        """Returns the rows whose states have to be computed."""
        unknown: list[int] = []
        for start in range(0, len(rows), _CHUNK):
            chunk = rows[start : start + _CHUNK].tolist()
            names = self._store.ids_and_sequences(chunk)
            unknown += [
                row
                for row, name in zip(chunk, names, strict=True)
                if next(filter(None, (known.size(*name) for known in self._known)), 0) != sizes[row]
            ]
        return np.array(unknown, np.int64)

    def _found(self) -> StatesManifest | None:
        """Returns the manifest of finished states of all passages, if their checksums match."""
        try:
            found = read_states_manifest(self.directory)
            if (found.fingerprint, found.generation) != self._wanted:
                return None
            OpenFile(self.directory / DATA).verify(found.sha256, found.bytes)
            made = StateFile.beside(self.directory, found)
        except ArtefactError:
            return None
        if made.held < self._manifest.passages:
            return None
        self._made = made
        return found

    def _undamaged(self) -> list[GenerationStates]:
        """Returns the states beside the shard that are damaged in part: other passages are
        reused.
        """
        try:
            found = read_states_manifest(self.directory)
            if (found.fingerprint, found.generation) != self._wanted:
                return []
            return [GenerationStates(self._store, StateFile.beside(self.directory, found))]
        except ArtefactError:
            return []

    def _remove_others(self) -> None:
        """Removes the states that are being replaced, and unfinished states of other readers."""
        for path in partial_files(self.directory):
            if path not in (self._partial, self._starts):
                path.unlink()
        for name in (STATES_FILE, DATA, STARTS):
            (self.directory / name).unlink(missing_ok=True)
        # otherwise a power loss might leave the old manifest beside the new states
        sync_directory(self.directory)

    def _rows(self) -> tuple[RowNumbers, NDArray[np.int64]]:
        """Returns the rows that hold a passage, and the size of every row's states in bytes."""
        rows, sizes = self._store.row_numbers(), np.zeros(self._manifest.rows, np.int64)
        for row in rows.tolist():
            tokens = self._lower.tokens(self._store.load([row])[0])
            sizes[row] = packed_size(tokens, self._lower.width)
        return rows, sizes

    def _done(self, file: OpenFile, rows: RowNumbers, starts: NDArray[np.int64]) -> int:
        """Returns how many passages are complete on disk, and cuts off everything after them: a
        power loss may leave half a passage, or bytes that were never written.
        """
        done = 0
        for row in rows.tolist():
            start, end = starts[row : row + 2].tolist()
            if end > file.size or not _is_whole(file.read(end - start, start), self._lower.width):
                break
            done += 1
        os.truncate(self._partial, int(starts[rows[done]] if done < len(rows) else starts[-1]))
        return done

    def _publish(self, starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> StatesManifest:
        sync_file(self._partial)
        save_array(starts.astype(np.uint64), self._starts)
        width, held = self._lower.width, sizes[sizes > 0]
        each = packed_size(1, width) - packed_size(0, width)
        manifest = StatesManifest(
            fingerprint=self._lower.fingerprint,
            generation=self._manifest.generation,
            width=width,
            tokens=int((held - packed_size(0, width)).sum()) // each,
            bytes=self._partial.stat().st_size,
            sha256=sha256(self._partial),
            starts_bytes=self._starts.stat().st_size,
            starts_sha256=sha256(self._starts),
        )
        self._remove_others()
        self._starts.rename(self.directory / STARTS)
        self._partial.rename(self.directory / DATA)
        try:
            write_states_manifest(self.directory, manifest)
        except BaseException:
            with contextlib.suppress(OSError):  # the next call resumes with the computed states
                (self.directory / DATA).rename(self._partial)
            raise
        return manifest


def partial_files(directory: Path) -> list[Path]:
    """Returns the files that interrupted calls left beside a shard."""
    return [*directory.glob(_PARTIAL), *directory.glob(_PARTIAL_STARTS)]


def _is_whole(data: bytes, width: int) -> bool:
    try:
        unpacked(data, width)
    except ArtefactError:
        return False
    return True
