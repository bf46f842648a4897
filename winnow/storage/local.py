"""A place in a directory of this machine, or of a network file system that is mounted on it."""

import contextlib
import errno
import fcntl
import os
import shutil
import stat
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

from winnow.errors import ArtefactError
from winnow.files.durable import sync_directory, write_durably
from winnow.storage.place import Advance, ignore, unusable

_BLOCK = 1 << 20
_LOCK = ".lock"
_ASIDE = ".winnow-"
"""Prefix of files that are being written. Other hidden files belong to the user."""
_ABANDONED = 24 * 3600.0
"""Seconds after which nobody is writing a file any more."""
_MISSING = (FileNotFoundError, NotADirectoryError)


class LocalPlace:
    """A directory. What is written survives a power loss once the method returns."""

    def __init__(self, root: Path, purpose: str, must_exist: bool = False) -> None:
        self._root, self._purpose, self._must_exist = root, purpose, must_exist

    @property
    def name(self) -> str:
        return str(self._root)

    def read(self, path: str) -> bytes | None:
        with self._reached():
            try:
                return _content(self._root / path)
            except _MISSING:
                self._expect_root()
                return None

    def sizes(self, folder: str = "") -> dict[str, int]:
        with self._reached():
            return {each.name: _size(each) for each in self._listed(folder) if not each.is_dir()}

    def folders(self, folder: str = "") -> list[str]:
        with self._reached():
            return [each.name for each in self._listed(folder) if each.is_dir()]

    def write(self, path: str, content: bytes) -> None:
        with self._reached():
            write_durably(self._made(path), content)

    def upload(self, path: str, source: Path, advance: Advance = ignore) -> None:
        with self._reached():
            target = self._made(path)
            _remove_abandoned(target.parent)
            descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=_ASIDE)
            aside = Path(name)
            try:
                os.fchmod(descriptor, 0o644)  # other users read it, too
                _write(_read(source), descriptor, advance)
                aside.replace(target)
            except BaseException:
                aside.unlink(missing_ok=True)
                raise
            sync_directory(target.parent)

    def download(self, path: str, target: Path, advance: Advance = ignore) -> None:
        source = self._root / path
        if not source.is_file():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(source))
        try:
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            _write(self._blocks(source), descriptor, advance)
        except OSError as error:
            raise OSError(error.errno, error.strerror, error.filename or str(target)) from error

    def publish(
        self, folder: str, source: Path, names: Sequence[str], check: Callable[[Path | None], None]
    ) -> None:
        with self._reached():
            target = self._made(folder)
            _remove_hidden(target.parent)
            aside = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
            try:
                for name in names:
                    write_durably(aside / name, (source / name).read_bytes())
                check(aside)
                aside.chmod(0o755)  # other users read it, too
                if target.is_dir():
                    shutil.rmtree(target)  # it was not complete
                aside.rename(target)
            except BaseException:
                shutil.rmtree(aside, ignore_errors=True)
                raise
            sync_directory(target.parent)
            sync_directory(self._root)

    def directory(self, folder: str) -> Path | None:
        with self._reached():
            directory = self._root / folder
            if directory.is_dir():
                return directory
            self._expect_root()
            return None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """One writer at a time, on this machine; others wait."""
        with self._reached():
            path = self._made(_LOCK)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            with self._reached():
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _blocks(self, source: Path) -> Iterator[bytes]:
        """Reads a file of the place; a fault of its disk is not one of the target's."""
        with self._reached():
            yield from _read(source)

    def _listed(self, folder: str) -> list[Path]:
        try:
            found = (self._root / folder).iterdir()
            return [each for each in found if not each.name.startswith(".")]
        except _MISSING:
            self._expect_root()
            return []

    def _made(self, path: str) -> Path:
        """The path, in a folder that exists."""
        target = self._root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        return target

    def _expect_root(self) -> None:
        """Raises OSError for a file, and for a missing directory that must exist.

        A disk that is not mounted, or a file, would otherwise be an empty place.
        """
        if self._must_exist or self._root.exists():
            os.stat(os.path.join(self._root, ""))  # noqa: PTH116, PTH118 (paths drop the last slash)

    @contextlib.contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            place = error.filename or self._root
            raise unusable(place, self._purpose, error.strerror or error) from error


def _content(path: Path) -> bytes:
    """The content of a regular file: a pipe without a writer would keep the thread for ever."""
    try:
        with open(path, "rb", opener=_without_waiting) as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return file.read()
    except IsADirectoryError as error:
        raise ArtefactError(f"cannot read {path}: it is a directory") from error
    raise ArtefactError(f"cannot read {path}: it is not a regular file")


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _size(path: Path) -> int:
    """The bytes of a file; 0 if it was removed, or is a link to nothing."""
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_size
    return 0


def _read(source: Path) -> Iterator[bytes]:
    with source.open("rb") as file:
        while block := file.read(_BLOCK):
            yield block


def _write(blocks: Iterable[bytes], descriptor: int, advance: Advance) -> None:
    """Writes into a file that is open, makes it durable, and closes it."""
    with os.fdopen(descriptor, "wb") as target:
        for block in blocks:
            target.write(block)
            advance(len(block))
        target.flush()
        os.fsync(target.fileno())


def _remove_abandoned(folder: Path) -> None:
    """Removes what a process that was killed was writing."""
    for each in folder.glob(f"{_ASIDE}*"):
        with contextlib.suppress(OSError):
            if time.time() - each.stat().st_mtime > _ABANDONED:
                each.unlink()


def _remove_hidden(directory: Path) -> None:
    """Removes what a publisher that was killed left; the lock says that there is no other now."""
    for each in directory.glob(".*"):
        if each.is_dir():
            shutil.rmtree(each, ignore_errors=True)
        else:
            each.unlink(missing_ok=True)
