"""Where bundles are published: a directory, or a folder at any fsspec URL, such as s3://models/mini."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import fsspec

from winnow.errors import ArtefactError, UnavailableError, WinnowError
from winnow.quoting import shortened, shown

_NOT_THERE = (FileNotFoundError, NotADirectoryError)


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

    def get(self, file: str, target: Path) -> None:
        """Copies a file to a local one; raises ArtefactError if there is no such file."""
        with self._reached():
            try:
                self._system.get_file(self._path(file), str(target))
            except _NOT_THERE as error:
                raise ArtefactError(
                    f"{self.name} has no {file}, which its manifest names: publish it again"
                ) from error

    def put(self, source: Path, file: str) -> None:
        """Copies a local file here."""
        with self._reached():
            with contextlib.suppress(FileExistsError):
                self._system.makedirs(self._root, exist_ok=True)
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
