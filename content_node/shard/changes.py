"""How the files of a shard changed on disk while it is served. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class Watched(Protocol):
    """An open file whose name and content are watched."""

    path: Path

    @property
    def altered(self) -> bool:
        """Whether it was written to since it was opened."""

    @property
    def named(self) -> bool:
        """Whether its name still leads to it."""


@dataclass(frozen=True, slots=True)
class Change:
    """Why the directory is no longer what is served."""

    reason: str
    readable: bool
    """Whether the open files are still what was verified, so that calls can be answered from
    them.
    """


def change_of(files: Sequence[Watched]) -> Change | None:
    """Returns the worst change; None if all files are as they were opened."""
    for file in files:
        if file.altered:
            return Change(
                f"{file.path} was written to while it was served: copy the shard again, and start "
                "the node again",
                readable=False,
            )
    for file in files:
        if not file.named:
            return Change(
                f"{file.path} was replaced or deleted while it was served; calls are still "
                "answered from what was loaded, start the node again to serve the new file",
                readable=True,
            )
    return None


def after(told: Change | None, found: Change | None) -> Change | None:
    """Returns the change to tell after `told`: files may come back, but not if they were
    overwritten.
    """
    return told if told is not None and not told.readable else found
