"""What became of a shard's files on disk while it is served. Decides; the files look."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol


class Watched(Protocol):
    """What is known of an open file."""

    path: Path

    @property
    def altered(self) -> bool:
        """Whether it was written to since it was opened."""

    @property
    def named(self) -> bool:
        """Whether its name still leads to it."""


@dataclass(frozen=True, slots=True)
class Change:
    """Why the directory is not any more what is served."""

    reason: str
    readable: bool
    """Whether what is open is still what was verified: questions in hand are answered from it."""


def change_of(files: Sequence[Watched]) -> Change | None:
    """What changed, the worst first; None where all is as it was opened."""
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
                f"{file.path} was replaced or deleted while it was served; what was loaded is "
                "still served to who asks, start the node again to serve what is there now",
                readable=True,
            )
    return None


def after(told: Change | None, found: Change | None) -> Change | None:
    """What is so now, `told` before: files may come back, what was written over does not."""
    return told if told is not None and not told.readable else found
