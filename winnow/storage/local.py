"""Storage in a local directory, which may be on a mounted network file system."""

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

from winnow.errors import ArtefactError, UnavailableError
from winnow.files.durable import create_directories, sync_directory, write_durably
from winnow.storage.storage import OnCopied, ignore_copied, storage_error

_BLOCK_BYTES = 1 << 20
_LOCK_FILE = ".lock"
_TEMPORARY_PREFIX = ".winnow-"
"""Prefix of temporary files. Other hidden files belong to users."""
_ABANDONED_AFTER = 24 * 3600.0
"""Age in seconds at which a temporary file counts as abandoned by its writer."""
_LOCK_SECONDS = 30.0
"""Seconds for which a writer waits for the lock of one file. Changes take a moment."""
_LOCK_POLL_SECONDS = 0.05
_MISSING_ERRORS = (FileNotFoundError, NotADirectoryError)


class LocalStorage:
    """Storage in a directory. A write survives a power loss once its method has returned."""

    def __init__(self, root: Path, purpose: str, must_exist: bool = False) -> None:
        self._root, self._purpose, self._must_exist = root, purpose, must_exist

    @property
    def name(self) -> str:
        return str(self._root)

    def read(self, path: str) -> bytes | None:
        with self._translated_errors():
            try:
                return _read_regular_file(self._root / path)
            except _MISSING_ERRORS:
                self._check_root()
                return None

    def sizes(self, folder: str = "") -> dict[str, int]:
        with self._translated_errors():
            return {each.name: _size(each) for each in self._entries(folder) if not each.is_dir()}

    def folders(self, folder: str = "") -> list[str]:
        with self._translated_errors():
            return [each.name for each in self._entries(folder) if each.is_dir()]

    def write(self, path: str, content: bytes) -> None:
        with self._translated_errors():
            write_durably(self._create_parent(path), content)

    def upload(self, path: str, source: Path, on_copied: OnCopied = ignore_copied) -> None:
        with self._translated_errors():
            target = self._create_parent(path)
            _remove_abandoned(target.parent)
            descriptor, name = tempfile.mkstemp(dir=target.parent, prefix=_TEMPORARY_PREFIX)
            temporary = Path(name)
            try:
                os.fchmod(descriptor, 0o644)  # so that other users can read the file
                _write_blocks(_read_blocks(source), descriptor, on_copied)
                temporary.replace(target)
            except BaseException:
                temporary.unlink(missing_ok=True)
                raise
            sync_directory(target.parent)

    def download(self, path: str, target: Path, on_copied: OnCopied = ignore_copied) -> None:
        source = self._root / path
        if not source.is_file():
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), str(source))
        try:
            descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
            _write_blocks(self._read_source(source), descriptor, on_copied)
        except OSError as error:
            raise OSError(error.errno, error.strerror, error.filename or str(target)) from error

    def remove(self, path: str) -> None:
        with self._translated_errors():
            (self._root / path).unlink(missing_ok=True)

    def publish(
        self, folder: str, source: Path, names: Sequence[str], check: Callable[[Path | None], None]
    ) -> None:
        with self._translated_errors():
            target = self._create_parent(folder)
            _remove_hidden(target.parent)
            temporary = Path(tempfile.mkdtemp(dir=target.parent, prefix=f".{target.name}."))
            try:
                for name in names:
                    write_durably(temporary / name, (source / name).read_bytes())
                check(temporary)
                temporary.chmod(0o755)  # so that other users can read the files
                if target.is_dir():
                    shutil.rmtree(target)  # an incomplete version
                temporary.rename(target)
            except BaseException:
                shutil.rmtree(temporary, ignore_errors=True)
                raise
            sync_directory(target.parent)
            sync_directory(self._root)

    def directory(self, folder: str) -> Path | None:
        with self._translated_errors():
            directory = self._root / folder
            if directory.is_dir():
                return directory
            self._check_root()
            return None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Holds the lock of the storage; other writers on this machine wait."""
        with self._opened_lock() as descriptor:
            with self._translated_errors():
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield

    @contextlib.contextmanager
    def lock_file(self, path: str) -> Iterator[Callable[[], None]]:
        with self._opened_lock() as descriptor:
            with self._translated_errors():
                is_locked = _try_lock(descriptor, time.monotonic() + _LOCK_SECONDS)
            if not is_locked:
                raise UnavailableError(
                    f"another process has held {self._root / _LOCK_FILE} for {_LOCK_SECONDS:g} s, "
                    f"so {path} is not changed: end that process, or run this again"
                )
            yield lambda: None

    @contextlib.contextmanager
    def _opened_lock(self) -> Iterator[int]:
        """Opens the file of the lock, and creates it if necessary."""
        with self._translated_errors():
            path = self._create_parent(_LOCK_FILE)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def _read_source(self, source: Path) -> Iterator[bytes]:
        """Yields the blocks of a stored file. Raises read errors as errors of the storage."""
        with self._translated_errors():
            yield from _read_blocks(source)

    def _entries(self, folder: str) -> list[Path]:
        try:
            entries = (self._root / folder).iterdir()
            return [entry for entry in entries if not entry.name.startswith(".")]
        except _MISSING_ERRORS:
            self._check_root()
            return []

    def _create_parent(self, path: str) -> Path:
        """Creates the folder of a file, and returns the full path of the file."""
        target = self._root / path
        create_directories(target.parent)
        return target

    def _check_root(self) -> None:
        """Raises OSError if the root is a file, or is missing although it must exist.

        Without this check, an unmounted disk would look like empty storage.
        """
        if self._must_exist or self._root.exists():
            os.stat(os.path.join(self._root, ""))  # noqa: PTH116, PTH118 (paths drop the last slash)

    @contextlib.contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            location = error.filename or self._root
            raise storage_error(location, self._purpose, error.strerror or error) from error


def _try_lock(descriptor: int, until: float) -> bool:
    """Locks an open file; returns False if another process holds the lock until then."""
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() >= until:
                return False
            time.sleep(_LOCK_POLL_SECONDS)
        else:
            return True


def _read_regular_file(path: Path) -> bytes:
    """Reads a regular file. Refuses a pipe, which would block the thread without a writer."""
    try:
        with open(path, "rb", opener=_open_nonblocking) as file:
            if stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                return file.read()
    except IsADirectoryError as error:
        raise ArtefactError(f"cannot read {path}: it is a directory") from error
    raise ArtefactError(f"cannot read {path}: it is not a regular file")


def _open_nonblocking(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NONBLOCK)


def _size(path: Path) -> int:
    """Returns the size of a file in bytes; 0 if it was removed or is a dangling link."""
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_size
    return 0


def _read_blocks(source: Path) -> Iterator[bytes]:
    with source.open("rb") as file:
        while block := file.read(_BLOCK_BYTES):
            yield block


def _write_blocks(blocks: Iterable[bytes], descriptor: int, on_copied: OnCopied) -> None:
    """Writes blocks to an open descriptor, syncs the file, and closes it."""
    with os.fdopen(descriptor, "wb") as target:
        for block in blocks:
            target.write(block)
            on_copied(len(block))
        target.flush()
        os.fsync(target.fileno())


def _remove_abandoned(folder: Path) -> None:
    """Removes temporary files of processes that were killed."""
    for each in folder.glob(f"{_TEMPORARY_PREFIX}*"):
        with contextlib.suppress(OSError):
            if time.time() - each.stat().st_mtime > _ABANDONED_AFTER:
                each.unlink()


def _remove_hidden(directory: Path) -> None:
    """Removes files of killed publishers. The caller's lock excludes running publishers."""
    for each in directory.glob(".*"):
        if each.is_dir():
            shutil.rmtree(each, ignore_errors=True)
        else:
            each.unlink(missing_ok=True)
