"""Snapshots at an fsspec URL, such as s3://bucket/index.

A put of one file is whole or not at all there, as in every object store.
"""

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
from fsspec.callbacks import Callback

from winnow.content_node.snapshots.place import Advance
from winnow.errors import ArtefactError, UnavailableError, WinnowError
from winnow.quoting import shortened, shown

_HERE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS)
"""Faults of the disk of this machine."""
_NOT_THERE = (FileNotFoundError, NotADirectoryError)


class RemotePlace:
    """A folder of a remote file system."""

    def __init__(self, url: str) -> None:
        """Raises UnavailableError if there is no way to such a place."""
        self._url = shown(url)
        with self._reached():
            self._system: Any
            self._system, self._root = fsspec.url_to_fs(url)

    @property
    def name(self) -> str:
        return self._url

    def sizes(self, folder: str) -> dict[str, int]:
        with self._reached():
            self._system.invalidate_cache()  # of listings, in which others' files are missing
            try:
                found = self._system.ls(self._path(folder), detail=True)
            except _NOT_THERE:
                return {}
            files = (each for each in found if each["type"] == "file")
            return {each["name"].rpartition("/")[2]: int(each["size"]) for each in files}

    def read(self, folder: str, file: str) -> bytes | None:
        with self._reached():
            try:
                content: bytes = self._system.cat_file(self._path(folder, file))
            except _NOT_THERE:
                return None
            return content

    def write(self, content: bytes, folder: str, file: str) -> None:
        with self._reached():
            self._make(folder)
            self._system.pipe_file(self._path(folder, file), content)

    def put(self, source: Path, advance: Advance, folder: str, file: str) -> None:
        with self._reached(), _Counted(advance) as counted:
            self._make(folder)
            self._system.put_file(str(source), self._path(folder, file), callback=counted)

    def get(self, target: Path, advance: Advance, folder: str, file: str) -> None:
        with self._reached(), _Counted(advance) as counted:
            try:
                self._system.get_file(self._path(folder, file), str(target), callback=counted)
            except _NOT_THERE as error:
                place = "/".join([self._url.rstrip("/"), folder, file])
                raise ArtefactError(f"{place} is missing: take another snapshot") from error

    def _make(self, folder: str) -> None:
        """Where there are folders at all."""
        with contextlib.suppress(FileExistsError):
            self._system.makedirs(self._path(folder), exist_ok=True)

    def _path(self, *path: str) -> str:
        return "/".join([self._root.rstrip("/"), *path])

    @contextlib.contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except WinnowError:
            raise
        except Exception as error:  # each file system has errors of its own
            if isinstance(error, OSError) and error.errno in _HERE:
                raise
            raise UnavailableError(
                f"snapshots at {self._url} cannot be reached: "
                f"{shortened(str(error)) or repr(error)}"
            ) from error


class _Counted(Callback):  # type: ignore[misc]
    """Passes on how many bytes were copied, whichever way a file system counts them."""

    def __init__(self, advance: Advance) -> None:
        super().__init__()
        self._advance, self._told = advance, 0

    def relative_update(self, inc: int = 1) -> None:
        self.absolute_update(self.value + inc)

    def absolute_update(self, value: int) -> None:
        self.value = value
        if value > self._told:
            self._advance(value - self._told)
            self._told = value
