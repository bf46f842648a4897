"""Snapshots in a directory of this machine, or of a network that is mounted on it."""

import contextlib
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from winnow.content_node.snapshots.place import Advance
from winnow.errors import ArtefactError, UnavailableError
from winnow.files.durable import sync_directory, write_durably

_BLOCK = 1 << 20
_LEFT_BEHIND = 24 * 3600.0
"""Seconds after which nobody is writing a file any more."""


class LocalPlace:
    """A directory. What is written survives a power loss once the method returns."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def name(self) -> str:
        return str(self._root)

    def sizes(self, folder: str) -> dict[str, int]:
        with self._reached():
            try:
                found = list((self._root / folder).iterdir())
            except FileNotFoundError:
                return {}
            plain = (each for each in found if not each.name.startswith("."))
            return {each.name: each.stat().st_size for each in plain if each.is_file()}

    def read(self, folder: str, file: str) -> bytes | None:
        with self._reached():
            try:
                return (self._root / folder / file).read_bytes()
            except FileNotFoundError:
                return None

    def write(self, content: bytes, folder: str, file: str) -> None:
        with self._reached():
            write_durably(self._folder(folder) / file, content)

    def put(self, source: Path, advance: Advance, folder: str, file: str) -> None:
        with self._reached():
            target = self._folder(folder) / file
            _remove_leftovers(target.parent)
            descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=".")
            aside = Path(name)
            try:
                os.fchmod(descriptor, 0o644)  # other users restore from it, too
                _copy(source, descriptor, advance)
                aside.replace(target)
            except BaseException:
                aside.unlink(missing_ok=True)
                raise
            sync_directory(target.parent)

    def get(self, target: Path, advance: Advance, folder: str, file: str) -> None:
        source = self._root / folder / file
        if not source.is_file():
            raise ArtefactError(f"{source} is missing: take another snapshot")
        _copy(source, os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644), advance)

    def _folder(self, name: str) -> Path:
        folder = self._root / name
        folder.mkdir(parents=True, exist_ok=True)
        return folder

    @contextlib.contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            place = error.filename or self._root
            raise UnavailableError(
                f"cannot use {place} for snapshots: {error.strerror or error}"
            ) from error


def _copy(source: Path, descriptor: int, advance: Advance) -> None:
    """Copies a file into one that is open, makes it durable, and closes it."""
    with os.fdopen(descriptor, "wb") as target, source.open("rb") as file:
        while block := file.read(_BLOCK):
            target.write(block)
            advance(len(block))
        target.flush()
        os.fsync(target.fileno())


def _remove_leftovers(folder: Path) -> None:
    """What was being written by a process that was killed."""
    for each in folder.glob(".*"):
        with contextlib.suppress(OSError):
            if time.time() - each.stat().st_mtime > _LEFT_BEHIND:
                each.unlink()
