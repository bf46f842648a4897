"""Storage at an fsspec URL, such as s3://bucket/index.

Each write of a file is atomic, as object stores guarantee.
"""

import contextlib
import errno
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any
from uuid import uuid4

import fsspec
from fsspec.callbacks import Callback

from winnow.errors import WinnowError
from winnow.quoting import shortened, shown
from winnow.storage.remote_lock import RemoteLock
from winnow.storage.stalling import STALLED_SECONDS, WatchedRequest
from winnow.storage.storage import OnCopied, ignore_copied, storage_error

_LOCAL_DISK_ERRNOS = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""Error numbers of the local disk."""
_SLOWEST_BYTES = 1e6
"""Bytes a second of the slowest upload. Stores report progress only after each part."""
_MISSING_ERRORS = (FileNotFoundError, NotADirectoryError)


class RemoteStorage:
    """A folder of a remote file system. Only single files can be locked."""

    def __init__(self, url: str, purpose: str) -> None:
        """Raises UnavailableError if fsspec does not support the URL, or lacks its package."""
        self._url, self._purpose = shown(url), purpose
        with self._translated_errors():
            self._system: Any
            self._system, self._root = fsspec.url_to_fs(url)

    @property
    def name(self) -> str:
        return self._url

    def read(self, path: str) -> bytes | None:
        with self._translated_errors():
            try:
                content: bytes = _request(partial(self._system.cat_file, self._full_path(path)))
            except (*_MISSING_ERRORS, IsADirectoryError):
                return None
            return content

    def sizes(self, folder: str = "") -> dict[str, int]:
        entries = self._entries(folder)
        return {n: int(each["size"] or 0) for n, each in entries if each["type"] != "directory"}

    def folders(self, folder: str = "") -> list[str]:
        return [name for name, each in self._entries(folder) if each["type"] == "directory"]

    def write(self, path: str, content: bytes) -> None:
        target = self._full_path(path)
        with self._translated_errors():
            write = partial(self._system.pipe_file, target, content)
            try:
                _request(write)
            except FileNotFoundError:  # file systems with folders need the parent folder first
                self._make_parent(target)
                _request(write)

    def upload(self, path: str, source: Path, on_copied: OnCopied = ignore_copied) -> None:
        target = self._full_path(path)
        with self._translated_errors(), _CopyCallback(on_copied) as callback:
            self._make_parent(target)
            copy = partial(self._system.put_file, str(source), target, callback=callback)
            seconds = STALLED_SECONDS + source.stat().st_size / _SLOWEST_BYTES
            WatchedRequest(copy, seconds).result(lambda: callback.reported)

    def download(self, path: str, target: Path, on_copied: OnCopied = ignore_copied) -> None:
        failed: OSError
        # a download that was given up may still write to its file, but not to the target
        partial_file = target.with_name(f"{target.name}.{uuid4().hex}.download")
        with self._translated_errors(), _CopyCallback(on_copied) as callback:
            try:
                copy = partial(
                    self._system.get_file,
                    self._full_path(path),
                    str(partial_file),
                    callback=callback,
                )
                WatchedRequest(copy, STALLED_SECONDS).result(lambda: _size(partial_file))
                partial_file.replace(target)
                return
            except _MISSING_ERRORS as error:
                failed = error
            except OSError as error:
                if error.errno not in _LOCAL_DISK_ERRNOS:
                    raise
                failed = OSError(error.errno, error.strerror, str(target))
            finally:
                partial_file.unlink(missing_ok=True)
        raise failed

    def remove(self, path: str) -> None:
        with self._translated_errors(), contextlib.suppress(*_MISSING_ERRORS):
            _request(partial(self._system.rm_file, self._full_path(path)))

    def publish(
        self, folder: str, source: Path, names: Sequence[str], check: Callable[[Path | None], None]
    ) -> None:
        for name in names:
            self.write(f"{folder}/{name}", (source / name).read_bytes())
        try:
            check(None)
        except BaseException:
            with contextlib.suppress(Exception):
                _request(partial(self._system.rm_file, self._full_path(f"{folder}/{names[-1]}")))
            raise

    def directory(self, folder: str) -> None:
        return None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Does nothing, because remote storage has no lock of a folder."""
        yield

    @contextlib.contextmanager
    def lock_file(self, path: str) -> Iterator[Callable[[], None]]:
        lock = RemoteLock(self._system, self._full_path(f"{path}.lock"))

        def check() -> None:
            with self._translated_errors():
                lock.check()

        with self._translated_errors():
            lock.acquire()
        try:
            yield check
        finally:
            with contextlib.suppress(Exception):  # a lock that stays is removed after some time
                lock.release()

    def _entries(self, folder: str) -> list[tuple[str, dict[str, Any]]]:
        """Returns the name of each entry of a folder, and fsspec's description of the entry."""
        path = self._full_path(folder)
        with self._translated_errors():
            self._system.invalidate_cache()  # cached listings lack new files of other writers
            try:
                listed = _request(partial(self._system.ls, path, detail=True))
            except _MISSING_ERRORS:
                return []
        entries = [
            (each["name"].rstrip("/").rpartition("/")[2], each)
            for each in listed
            if each["name"].rstrip("/") != path  # object stores list the folder itself
        ]
        return [(name, each) for name, each in entries if not name.startswith(".")]

    def _make_parent(self, path: str) -> None:
        """Creates the folder of a file, if the file system has folders."""
        with contextlib.suppress(FileExistsError):
            _request(partial(self._system.makedirs, path.rpartition("/")[0], exist_ok=True))

    def _full_path(self, path: str) -> str:
        return "/".join(each for each in (self._root.rstrip("/"), path) if each)

    @contextlib.contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except WinnowError:
            raise
        except Exception as error:  # each file system raises other types
            reason = shortened(str(error)) or repr(error)
            raise storage_error(self._url, self._purpose, reason) from error


def _request(request: Callable[[], Any]) -> Any:
    """Runs a request that transfers little; raises StoreStalledError if there is no reply."""
    return WatchedRequest(request, STALLED_SECONDS).result()


def _size(path: Path) -> int:
    with contextlib.suppress(OSError):
        return path.stat().st_size
    return 0


class _CopyCallback(Callback):  # type: ignore[misc]
    """Reports copied bytes. File systems report either increments or absolute counts."""

    def __init__(self, on_copied: OnCopied) -> None:
        super().__init__()
        self._on_copied, self.reported = on_copied, 0

    def relative_update(self, inc: int = 1) -> None:
        self.absolute_update(self.value + inc)

    def absolute_update(self, value: int) -> None:
        self.value = value
        if value > self.reported:
            self._on_copied(value - self.reported)
            self.reported = value
