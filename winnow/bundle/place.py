"""Where bundles are published: a directory, or a folder at any fsspec URL, such as s3://models/mini."""

import contextlib
import errno
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec
from fsspec.implementations.local import LocalFileSystem

from winnow.errors import ArtefactError, UnavailableError, WinnowError
from winnow.files.durable import write_durably
from winnow.quoting import shortened, shown

_NOT_THERE = (FileNotFoundError, NotADirectoryError)
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class Place:
    """The files of one bundle. All methods wait for files or for the network.

    Every method raises UnavailableError if the place cannot be reached or written.
    """

    def __init__(self, url: str) -> None:
        self.name = shown(url)
        with self._reached():
            self._system: Any
            self._system, self._root = fsspec.url_to_fs(url)

    def read(self, file: str) -> bytes | None:
        """A small file; None if there is none."""
        with self._reached():
            try:
                content: bytes = self._system.cat_file(self._path(file))
            except _NOT_THERE:
                return None
            return content

    def names(self) -> list[str]:
        """What lies here, of a bundle or not, but for what an interrupted `put` left; nothing if
        there is no such place yet.
        """
        with self._reached():
            try:
                found = self._system.ls(self._root, detail=False)
            except _NOT_THERE:
                return []
            own = self._root.rstrip("/")  # object stores list a directory within itself
            within = [each.rstrip("/") for each in found if each.rstrip("/") != own]
            names = [each.rpartition("/")[2] for each in within]
            return [name for name in names if not name.startswith(".")]

    def get(self, file: str, target: Path) -> None:
        """Copies a file to a local one.

        Raises:
            ArtefactError: there is no such file.
            OSError: there is no room for it on this machine.

        """
        with self._reached():
            try:
                self._system.get_file(self._path(file), str(target))
                return
            except _NOT_THERE as error:
                raise ArtefactError(
                    f"{self.name} has no {file}, which its manifest names: publish it again"
                ) from error
            except OSError as error:
                if error.errno not in _FULL:
                    raise
                full = error
        raise OSError(full.errno, full.strerror, str(target)) from full

    def put(self, source: Path, file: str) -> None:
        """Copies a local file here, whole or not at all: whoever pulls may read it meanwhile."""
        with self._reached():
            with contextlib.suppress(FileExistsError):
                self._system.makedirs(self._root, exist_ok=True)
            if isinstance(self._system, LocalFileSystem):
                write_durably(Path(self._path(file)), source.read_bytes())
            else:  # object stores put a file whole
                self._system.put_file(str(source), self._path(file))

    def _path(self, file: str) -> str:
        return f"{self._root.rstrip('/')}/{file}"

    @contextlib.contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except WinnowError:
            raise
        except Exception as error:  # each file system has errors of its own
            raise UnavailableError(
                f"cannot use {self.name} for bundles: {shortened(str(error)) or repr(error)}"
            ) from error
