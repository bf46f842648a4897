"""Computes the states of a shard's passages and puts them beside it.

Interrupted, the same call goes on where it was: what is on disk is whole passages. Only where the
machine goes down while they are put in place, they are computed again.
"""

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from winnow.content_node.reader.lower import Lower
from winnow.content_node.shard.manifest import read_shard_manifest
from winnow.content_node.shard.saving import save_array
from winnow.content_node.shard.store import PassageStore
from winnow.content_node.states.file import StateFile
from winnow.content_node.states.known import Either, Nothing, OfGeneration, ReusableStates
from winnow.content_node.states.manifest import (
    DATA,
    STARTS,
    STATES_FILE,
    StatesManifest,
    read_states_manifest,
    write_states_manifest,
)
from winnow.content_node.states.states import packed_size, unpacked
from winnow.errors import ArtefactError, UnavailableError
from winnow.files.durable import sync_directory, sync_file
from winnow.files.opened import OpenFile, sha256

LOCK = "states.lock"
_PARTIAL, _PARTIAL_STARTS = "states-*.partial", "states-*.partial.npy"
"""What becomes states, of the reader and the generation in the name."""
_CHUNK = 256
"""Passages between two writes: what an interruption may lose."""
_CONNECTIONS = 4
Started = Callable[[int, int], None]
Advance = Callable[[int], None]


class StatesWriter:
    """Writes the states of one shard."""

    def __init__(self, directory: Path, lower: Lower, known: ReusableStates | None = None) -> None:
        """What is `known` is copied. Raises ArtefactError if `directory` holds no shard."""
        self.directory, self._lower, self._known = directory, lower, known or Nothing()
        self._manifest = read_shard_manifest(directory)
        self._store = PassageStore(OpenFile(directory / self._manifest.store), _CONNECTIONS)
        self._wanted = lower.fingerprint, self._manifest.generation
        self._partial = directory / _PARTIAL.replace("*", "-".join(self._wanted))
        self._starts = directory / _PARTIAL_STARTS.replace("*", "-".join(self._wanted))
        self._made: StateFile | None = None

    @property
    def known(self) -> ReusableStates:
        """What was computed, also if the directory is gone since."""
        return OfGeneration(self._store, self._made) if self._made else self._known

    @property
    def lacking(self) -> int:
        """How many passages `write` left without states."""
        return self._manifest.passages - self._made.held if self._made else self._manifest.passages

    def write(
        self, threads: int, started: Started, advance: Advance, most: int | None = None
    ) -> StatesManifest:
        """Computes what is lacking. `started` is told how many passages there are, and how many
        of them are done; `advance` of those that are done since.

        With `most`, states of at most so many passages are computed, of the newest ones. The others
        have none then, unless they are known.

        Raises:
            ArtefactError: a passage cannot be read, or the reader's states are not as its bundle
                says.
            UnavailableError: another process is at it.
            OSError: the disk is full, say; what was written is kept.

        """
        if (found := self._found()) is None:
            with self._alone():
                # whoever held the lock may have made them just now
                found = self._found()
                if found is None:
                    return self._written(threads, started, advance, most)
        started(self._manifest.passages, self._manifest.passages)
        return found

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Two that write would spoil each other's files, also with two readers; the kernel frees
        the lock with the process.
        """
        with (self.directory / LOCK).open("ab") as file:
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise UnavailableError(
                    f"another process is computing the states of {self.directory}: wait for it"
                ) from error
            yield

    def _written(
        self, threads: int, started: Started, advance: Advance, most: int | None
    ) -> StatesManifest:
        self._known = Either(self._known, self._undamaged())
        rows, sizes = self._rows()
        if most is not None:
            left_out = self._unknown(rows, sizes)
            left_out = left_out[: max(len(left_out) - most, 0)]
            sizes[left_out] = 0
            rows = np.setdiff1d(rows, left_out)
        starts = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
        with self._partial.open("ab"):
            file = OpenFile(self._partial)  # open from here on, also if a merge removes it
        left = rows[self._done(file, rows, starts) :]
        started(len(rows), len(rows) - len(left))
        self._append(left, sizes, threads, advance)
        self._made = StateFile(file, starts, self._lower.width)
        return self._publish(starts, sizes)

    def _append(
        self, left: NDArray[np.int64], sizes: NDArray[np.int64], threads: int, advance: Advance
    ) -> None:
        with self._partial.open("ab") as file, ThreadPoolExecutor(threads, "states") as pool:
            for start in range(0, len(left), _CHUNK):
                chunk = left[start : start + _CHUNK]
                each = chunk.tolist(), sizes[chunk].tolist(), self._store.named(chunk.tolist())
                file.writelines(pool.map(self._packed, *each))
                advance(len(chunk))

    def _packed(self, row: int, size: int, name: tuple[str, int]) -> bytes:
        data = self._known.packed(*name)
        if len(data) != size:  # also of a passage that was prepared otherwise
            data = self._lower.states(self._store.load([row])[0]).packed()
        if len(data) != size:
            raise ArtefactError(
                f"the reader's lower layers do not give states of {self._lower.width} values, as "
                "its bundle says"
            )
        return data

    def _unknown(self, rows: NDArray[np.int64], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
        """The rows whose states have to be computed."""
        unknown: list[int] = []
        for start in range(0, len(rows), _CHUNK):
            chunk = rows[start : start + _CHUNK].tolist()
            names = self._store.named(chunk)
            unknown += [
                row
                for row, name in zip(chunk, names, strict=True)
                if self._known.size(*name) != sizes[row]
            ]
        return np.array(unknown, np.int64)

    def _found(self) -> StatesManifest | None:
        """What is there already, if it is of all passages and whole to the last bit."""
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

    def _undamaged(self) -> ReusableStates:
        """What is there already but not whole: the passages in it that are."""
        try:
            found = read_states_manifest(self.directory)
            if (found.fingerprint, found.generation) != self._wanted:
                return Nothing()
            return OfGeneration(self._store, StateFile.beside(self.directory, found))
        except ArtefactError:
            return Nothing()

    def _remove_others(self) -> None:
        """What another reader made, or an interrupted call for it; and what is damaged. Until
        there is something in their place, they serve.
        """
        for path in begun(self.directory):
            if path not in (self._partial, self._starts):
                path.unlink()
        for name in (STATES_FILE, DATA, STARTS):
            (self.directory / name).unlink(missing_ok=True)
        # or after a power loss the manifest of one might stand beside the states of another
        sync_directory(self.directory)

    def _rows(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The rows that hold a passage, and the bytes of the states of every row."""
        rows, sizes = self._store.numbers(), np.zeros(self._manifest.rows, np.int64)
        for row in rows.tolist():
            tokens = self._lower.tokens(self._store.load([row])[0])
            sizes[row] = packed_size(tokens, self._lower.width)
        return rows, sizes

    def _done(self, file: OpenFile, rows: NDArray[np.int64], starts: NDArray[np.int64]) -> int:
        """How many passages are on disk as they were written. What follows is cut off: half a
        passage, or what the machine had not written yet when it went down.
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
            with contextlib.suppress(OSError):  # what was computed is gone on with
                (self.directory / DATA).rename(self._partial)
            raise
        return manifest


def begun(directory: Path) -> list[Path]:
    """What interrupted calls left beside a shard."""
    return [*directory.glob(_PARTIAL), *directory.glob(_PARTIAL_STARTS)]


def _is_whole(data: bytes, width: int) -> bool:
    try:
        unpacked(data, width)
    except ArtefactError:
        return False
    return True
