"""The files of a store at an fsspec URL, such as s3://bucket/heads.

A put of one file is whole or not at all there, as in every object store. A version is there once
its `head.json` is, which is written last. What is fetched is kept in a cache on this machine.
"""

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import fsspec

from winnow.errors import UnavailableError, WinnowError
from winnow.heads.manifest import FILE, MODEL
from winnow.heads.store.cache import HeadCache
from winnow.quoting import shortened, shown


class RemoteFiles:
    """A folder of a remote file system. Writers are not kept apart: the last one wins."""

    def __init__(self, url: str, cache: HeadCache) -> None:
        """Raises UnavailableError if there is no way to such a place."""
        self._url, self._cache = shown(url), cache
        with self._reached():
            self._system: Any
            self._system, self._root = fsspec.url_to_fs(url)

    @property
    def name(self) -> str:
        return self._url

    def read(self, *path: str) -> bytes | None:
        with self._reached():
            try:
                content: bytes = self._system.cat_file(self._path(*path))
            except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
                return None
            return content

    def folders(self, *path: str) -> list[str]:
        with self._reached():
            self._system.invalidate_cache()  # of listings, in which others' writes are missing
            try:
                found = self._system.ls(self._path(*path), detail=True)
            except (FileNotFoundError, NotADirectoryError):
                return []
            names = (each["name"] for each in found if each["type"] == "directory")
            return [name.rstrip("/").rpartition("/")[2] for name in names]

    def replace(self, content: bytes, *path: str) -> None:
        place = self._path(*path)
        with self._reached():
            try:
                self._system.pipe_file(place, content)
            except FileNotFoundError:
                self._system.makedirs(place.rpartition("/")[0], exist_ok=True)
                self._system.pipe_file(place, content)

    def put(self, source: Path, check: Callable[[Path], object], *path: str) -> None:
        for name in (MODEL, FILE):
            self.replace((source / name).read_bytes(), *path, name)
        try:
            if (fetched := self.fetch(*path)) is None:
                raise UnavailableError(f"head store {self._url} does not keep what is written")
            check(fetched)
        except BaseException:
            with contextlib.suppress(Exception):
                self._system.rm_file(self._path(*path, FILE))
            raise

    def fetch(self, *path: str) -> Path | None:
        manifest = self.read(*path, FILE)
        if manifest is None:
            return None
        return self._cache.fetched(path[0], manifest, lambda: self.read(*path, MODEL))

    @contextlib.contextmanager
    def writing(self) -> Iterator[None]:
        """Others may write meanwhile."""
        yield

    def _path(self, *path: str) -> str:
        return "/".join([self._root.rstrip("/"), *path])

    @contextlib.contextmanager
    def _reached(self) -> Iterator[None]:
        try:
            yield
        except WinnowError:
            raise
        except Exception as error:  # each file system has errors of its own
            lost = UnavailableError(
                f"head store {self._url} cannot be used: {shortened(str(error)) or repr(error)}"
            )
            raise lost.with_public("the store of heads cannot be used") from error
