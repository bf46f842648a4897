"""Computes data of a shard's passages, such as states, and writes it beside the shard.

A call after an interruption resumes: it keeps the complete passages on disk. It computes all states
again only if the machine went down while the files were renamed.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.disk_space import check_room
from winnow.content_node.shard.manifest import read_shard_manifest
from winnow.content_node.shard.rows import RowNumbers
from winnow.content_node.shard.saving import save_array
from winnow.content_node.shard.store import PassageStore
from winnow.content_node.states.file import StateFile
from winnow.content_node.states.manifest import (
    StatesManifest,
    read_states_manifest,
    write_states_manifest,
)
from winnow.content_node.states.model import ReusableStates, StatesModel
from winnow.content_node.states.reusable_states import GenerationStates
from winnow.errors import ArtefactError
from winnow.files.durable import sync_directory, sync_file
from winnow.files.lock import locked
from winnow.files.opened import OpenFile, sha256
from winnow.reading.states_kind import READER_STATES, StatesKind

_CHUNK_PASSAGES = 256
"""Number of passages per write to disk, which an interruption may lose."""
_CONNECTIONS = 4
OnStart = Callable[[int, int], None]
"""Called once with the number of all passages, and the number of finished passages."""
OnAdvance = Callable[[int], None]
"""Called with the number of passages finished since the last call."""


class StatesWriter:
    """Writes the data of one model for one shard."""

    def __init__(
        self, directory: Path, model: StatesModel, reusable: Sequence[ReusableStates] = ()
    ) -> None:
        """`reusable` has states that are copied instead of computed.

        Raises ArtefactError if the directory holds no shard.
        """
        self.directory, self._model, self._reusable = directory, model, reusable
        self._kind = kind = model.kind
        self._manifest = read_shard_manifest(directory)
        self._store = PassageStore(OpenFile(directory / self._manifest.store), _CONNECTIONS)
        self._key = model.fingerprint, self._manifest.generation
        self._partial = directory / kind.partial.replace("*", "-".join(self._key))
        self._starts = directory / kind.partial_starts.replace("*", "-".join(self._key))
        self._finished: StateFile | None = None
        self._extra: Iterator[int] = count()
        """Has an item for each passage that may be computed because its reusable data is damaged.
        """

    @property
    def reusable(self) -> Sequence[ReusableStates]:
        """The states that another writer can reuse after `write`, even if a merge removed the
        directory.
        """
        return [GenerationStates(self._store, self._finished)] if self._finished else self._reusable

    @property
    def missing(self) -> int:
        """Number of passages that `write` left without states."""
        return self._manifest.passages - (self._finished.passages if self._finished else 0)

    def write(
        self,
        threads: int,
        on_start: OnStart,
        on_advance: OnAdvance,
        max_computed: int | None = None,
    ) -> StatesManifest:
        """Writes the states of all passages, computing those that cannot be reused.

        `max_computed` limits the computed passages to the newest ones. Older passages get no states
        unless these can be reused.

        Raises:
            ArtefactError: a passage cannot be read, or the states are not as wide as the bundle
                says.
            UnavailableError: another process is writing states.
            OSError: a file cannot be written, or the disk has no room for the remaining passages;
                finished passages are kept.

        """
        if (manifest := self._find_complete()) is None:
            noun = self._kind.noun
            busy = f"another process is computing the {noun} of {self.directory}: wait for it"
            with locked(self.directory / self._kind.lock, busy):
                # another process may have finished them before it released the lock
                manifest = self._find_complete()
                if manifest is None:
                    return self._write(threads, on_start, on_advance, max_computed)
        on_start(self._manifest.passages, self._manifest.passages)
        return manifest

    def _write(
        self, threads: int, on_start: OnStart, on_advance: OnAdvance, max_computed: int | None
    ) -> StatesManifest:
        if (existing := self._open_existing()) is not None:  # damaged or incomplete
            self._reusable = [*self._reusable, GenerationStates(self._store, existing[1])]
        rows, sizes = self._rows_and_sizes()
        to_compute = frozenset[int]()
        if max_computed is not None:
            missing = self._rows_to_compute(rows, sizes)
            skipped = missing[: max(len(missing) - max_computed, 0)]
            sizes[skipped] = 0
            rows = np.setdiff1d(rows, skipped)
            to_compute = frozenset(missing[len(skipped) :].tolist())
            self._extra = iter(range(max_computed - len(to_compute)))
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        with self._partial.open("ab"):
            file = OpenFile(self._partial)  # stays open, even if a merge removes it
        remaining = rows[self._resume(file, rows, starts) :]
        check_room(self.directory, int(sizes[remaining].sum()))
        on_start(len(rows), len(rows) - len(remaining))
        self._append(remaining, sizes, threads, on_advance, to_compute)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        self._finished = StateFile(file, starts, self._model.width, self._kind)
        return self._publish(starts, sizes)

    def _append(
        self,
        rows: RowNumbers,
        sizes: NDArray[np.int64],
        threads: int,
        on_advance: OnAdvance,
        to_compute: frozenset[int],
    ) -> None:
        """Appends the states of rows, and sets the sizes of rows that get none to 0."""
        with self._partial.open("ab") as file, ThreadPoolExecutor(threads, "states") as pool:
            for start in range(0, len(rows), _CHUNK_PASSAGES):
                chunk = rows[start : start + _CHUNK_PASSAGES]
                names = self._store.ids_and_sequences(chunk.tolist())
                computed = [row in to_compute for row in chunk.tolist()]
                packed = list(
                    pool.map(self._packed, chunk.tolist(), sizes[chunk].tolist(), names, computed)
                )
                file.writelines(packed)
                sizes[chunk] = [len(each) for each in packed]
                on_advance(len(chunk))

    def _packed(self, row: int, size: int, name: tuple[str, int], is_computed: bool) -> bytes:
        """Returns the states of a row in the format on disk: copied if possible, else computed.

        Returns none if those to copy are damaged, and too many of these were computed already.
        """
        data = next(filter(None, (states.packed(*name) for states in self._reusable)), b"")
        if len(data) != size:  # missing, or of other windows
            if not is_computed and next(self._extra, None) is None:
                return b""
            data = self._model.packed(self._store.load([row])[0])
        if len(data) != size:
            raise ArtefactError(
                f"the model does not return {self._kind.noun} of {self._model.width} values, "
                "although the bundle's manifest says so: use another bundle"
            )
        return data

    def _rows_to_compute(self, rows: RowNumbers, sizes: NDArray[np.int64]) -> RowNumbers:
        """Returns the rows whose states cannot be reused."""
        to_compute: list[int] = []
        for start in range(0, len(rows), _CHUNK_PASSAGES):
            chunk = rows[start : start + _CHUNK_PASSAGES].tolist()
            for row, name in zip(chunk, self._store.ids_and_sequences(chunk), strict=True):
                reusable = filter(None, (states.size(*name) for states in self._reusable))
                if next(reusable, 0) != sizes[row]:
                    to_compute.append(row)
        return np.array(to_compute, np.int64)

    def _find_complete(self) -> StatesManifest | None:
        """Returns the manifest of existing states of all passages, if the checksums match.

        States in the format of an older version are not complete: they are converted.
        """
        if (existing := self._open_existing()) is None:
            return None
        manifest, states = existing
        if manifest.format != self._kind.format:
            return None
        try:
            OpenFile(self.directory / self._kind.data).verify(manifest.sha256, manifest.bytes)
        except ArtefactError:
            return None
        if states.passages < self._manifest.passages:
            return None
        self._finished = states
        return manifest

    def _open_existing(self) -> tuple[StatesManifest, StateFile] | None:
        """Opens the states beside the shard. Some of them may be damaged.

        Returns None without states of this reader and generation.
        """
        try:
            manifest = read_states_manifest(self.directory, self._kind)
            if (manifest.fingerprint, manifest.generation) != self._key:
                return None
            return manifest, StateFile.open_beside(self.directory, manifest, self._kind)
        except ArtefactError:
            return None

    def _remove_replaced(self) -> None:
        """Removes the states that are being replaced, and unfinished states of other readers."""
        for path in partial_files(self.directory, self._kind):
            if path not in (self._partial, self._starts):
                path.unlink()
        for name in self._kind.files:
            (self.directory / name).unlink(missing_ok=True)
        # otherwise a power loss might leave the old manifest beside the new states
        sync_directory(self.directory)

    def _rows_and_sizes(self) -> tuple[RowNumbers, NDArray[np.int64]]:
        """Returns the rows that hold a passage, and the size of every row's states in bytes."""
        rows, sizes = self._store.row_numbers(), np.zeros(self._manifest.rows, np.int64)
        for row in rows.tolist():
            tokens = self._model.count_tokens(self._store.load([row])[0])
            sizes[row] = self._kind.packed_size(tokens, self._model.width)
        return rows, sizes

    def _resume(self, file: OpenFile, rows: RowNumbers, starts: NDArray[np.int64]) -> int:
        """Counts the complete passages on disk, and truncates the file after them: a power loss may
        leave half a passage, or bytes that were never written.
        """
        complete = 0
        for row in rows.tolist():
            start, end = starts[row : row + 2].tolist()
            if end > file.size or not self._is_valid(file.read(end - start, start)):
                break
            complete += 1
        end = starts[rows[complete]] if complete < len(rows) else starts[-1]
        os.truncate(self._partial, int(end))
        return complete

    def _is_valid(self, data: bytes) -> bool:
        try:
            self._kind.check(data, self._model.width)
        except ArtefactError:
            return False
        return True

    def _publish(self, starts: NDArray[np.int64], sizes: NDArray[np.int64]) -> StatesManifest:
        sync_file(self._partial)
        save_array(starts.astype(np.uint64), self._starts)
        kind, width, sizes = self._kind, self._model.width, sizes[sizes > 0]
        manifest = StatesManifest(
            format=kind.format,
            fingerprint=self._model.fingerprint,
            generation=self._manifest.generation,
            width=width,
            tokens=int((sizes - kind.packed_size(0, width)).sum()) // kind.token_bytes(width),
            bytes=self._partial.stat().st_size,
            sha256=sha256(self._partial),
            starts_bytes=self._starts.stat().st_size,
            starts_sha256=sha256(self._starts),
        )
        self._remove_replaced()
        self._starts.rename(self.directory / kind.starts_file)
        self._partial.rename(self.directory / kind.data)
        try:
            write_states_manifest(self.directory, manifest, kind)
        except BaseException:
            with contextlib.suppress(OSError):  # the next call resumes with the computed states
                (self.directory / kind.data).rename(self._partial)
            raise
        return manifest


def partial_files(directory: Path, kind: StatesKind = READER_STATES) -> list[Path]:
    """Returns the unfinished files of interrupted calls beside a shard."""
    return [*directory.glob(kind.partial), *directory.glob(kind.partial_starts)]
