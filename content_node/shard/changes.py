"""Detects changes of a shard's files on disk while the shard is served. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class WatchedFile(Protocol):
    """An open file whose name and content are watched."""

    path: Path

    @property
    def is_altered(self) -> bool:
        """Whether the file was written to since it was opened."""

    @property
    def has_its_path(self) -> bool:
        """Whether the path still leads to this file."""


@dataclass(frozen=True, slots=True)
class FileChange:
    """A difference between the files on disk and the open files."""

    reason: str
    readable: bool
    """Whether calls can still be answered from the open files, which were not overwritten."""


def find_change(files: Sequence[WatchedFile]) -> FileChange | None:
    """Returns the worst change; None if no file changed."""
    for file in files:
        if file.is_altered:
            return FileChange(
                f"{file.path} was overwritten while it was served: copy the shard again, and start "
                "the node again",
                readable=False,
            )
    for file in files:
        if not file.has_its_path:
            return FileChange(
                f"{file.path} was replaced or deleted while it was served: check the directory, "
                "and start the node again",
                readable=True,
            )
    return None


def change_to_report(reported: FileChange | None, current: FileChange | None) -> FileChange | None:
    """Returns the change to report after `reported`: overwritten files stay unusable."""
    return reported if reported is not None and not reported.readable else current
