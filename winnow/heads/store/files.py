"""The files of a store, wherever they lie.

Implementations: `winnow.heads.store.local_files` (a directory) and `remote_files` (any fsspec URL).
Paths are names from the root of the store on.
"""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol


class StoreFiles(Protocol):
    """Every method raises UnavailableError if the files cannot be reached."""

    @property
    def name(self) -> str:
        """The path or URL of the root."""

    def read(self, *path: str) -> bytes | None:
        """The content of a file; None if there is no such file."""

    def folders(self, *path: str) -> list[str]:
        """Names of the folders in a folder; none if there is no such folder."""

    def replace(self, content: bytes, *path: str) -> None:
        """Writes a file, over one that is there; readers see the old content or the new one."""

    def put(self, source: Path, check: Callable[[Path], object], *path: str) -> None:
        """Puts a local head into a folder that holds none yet, whole or not at all.

        `check` is given a local copy of what was written, and raises if it is not good.
        """

    def fetch(self, *path: str) -> Path | None:
        """A local folder with the head in a folder; None if there is no such head.

        Raises:
            ArtefactError: it is damaged.

        """

    def writing(self) -> AbstractContextManager[None]:
        """Keeps others from writing meanwhile, where that can be done."""
