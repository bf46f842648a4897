"""A place at an fsspec URL, such as s3://bucket/index.

A put of one file is whole or not at all there, as in every object store.
"""

import contextlib
import errno
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import fsspec
from fsspec.callbacks import Callback

from winnow.errors import WinnowError
from winnow.quoting import shortened, shown
from winnow.storage.place import Advance, ignore, unusable

_HERE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""Faults of the disk of this machine."""
_MISSING = (FileNotFoundError, NotADirectoryError)


class RemotePlace:
    """A folder of a remote file system. It has no lock: of two writers, the last one wins."""

    def __init__(self, url: str, purpose: str) -> None:
        """Raises UnavailableError if fsspec knows no such URL, or lacks the package for it."""
        self._url, self._purpose = shown(url), purpose
        with self._reached():
            self._system: Any
            self._system, self._root = fsspec.url_to_fs(url)

    @property
    def name(self) -> str:
        return self._url

    def read(self, path: str) -> bytes | None:
        with self._reached():
            try:
                content: bytes = self._system.cat_file(self._path(path))
            except (*_MISSING, IsADirectoryError):
                return None
            return content

    def sizes(self, folder: str = "") -> dict[str, int]:
        found = self._listed(folder)
        return {n: int(each["size"] or 0) for n, each in found if each["type"] != "directory"}

    def folders(self, folder: str = "") -> list[str]:
        return [name for name, each in self._listed(folder) if each["type"] == "directory"]

    def write(self, path: str, content: bytes) -> None:
        target = self._path(path)
        with self._reached():
            try:
                self._system.pipe_file(target, content)
            except FileNotFoundError:  # file systems that have folders want them made
                self._make_parent(target)
                self._system.pipe_file(target, content)

    def upload(self, path: str, source: Path, advance: Advance = ignore) -> None:
        target = self._path(path)
        with self._reached(), _CopiedBytes(advance) as callback:
            self._make_parent(target)
            self._system.put_file(str(source), target, callback=callback)

    def download(self, path: str, target: Path, advance: Advance = ignore) -> None:
        failed: OSError
        with self._reached(), _CopiedBytes(advance) as callback:
            try:
                self._system.get_file(self._path(path), str(target), callback=callback)
                return
            except _MISSING as error:
                failed = error
            except OSError as error:
                if error.errno not in _HERE:
                    raise
                failed = OSError(error.errno, error.strerror, str(target))
        raise failed

    def publish(
        self, folder: str, source: Path, names: Sequence[str], check: Callable[[Path | None], None]
    ) -> None:
        for name in names:
            self.write(f"{folder}/{name}", (source / name).read_bytes())
        try:
            check(None)
        except BaseException:
            with contextlib.suppress(Exception):
                self._system.rm_file(self._path(f"{folder}/{names[-1]}"))
            raise

    def directory(self, folder: str) -> None:
        return None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Others may write meanwhile."""
        yield

    def _listed(self, folder: str) -> list[tuple[str, dict[str, Any]]]:
        """What fsspec says of each entry, with its name."""
        path = self._path(folder)
        with self._reached():
            self._system.invalidate_cache()  # of listings, which lack what others have written
            try:
                found = self._system.ls(path, detail=True)
            except _MISSING:
                return []
        within = (each for each in found if each["name"].rstrip("/") != path)  # object stores
        named = ((each["name"].rstrip("/").rpartition("/")[2], each) for each in within)
        return [(name, each) for name, each in named if not name.startswith(".")]

    def _make_parent(self, path: str) -> None:
        """Makes the folder of a file, where the file system has folders."""
        with contextlib.suppress(FileExistsError):
            self._system.makedirs(path.rpartition("/")[0], exist_ok=True)

    def _path(self, path: str) -> str:
        return "/".join(each for each in (self._root.rstrip("/"), path) if each)

    @contextlib.contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except WinnowError:
            raise
        except Exception as error:  # each file system has its own errors
            reason = shortened(str(error)) or repr(error)
            raise unusable(self._url, self._purpose, reason) from error


class _CopiedBytes(Callback):  # type: ignore[misc]
    """Passes on how many bytes were copied, whichever way a file system counts them."""

    def __init__(self, advance: Advance) -> None:
        super().__init__()
        self._advance, self._reported = advance, 0

    def relative_update(self, inc: int = 1) -> None:
        self.absolute_update(self.value + inc)

    def absolute_update(self, value: int) -> None:
        self.value = value
        if value > self._reported:
            self._advance(value - self._reported)
            self._reported = value
