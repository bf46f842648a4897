"""What copying reports while it runs, in megabytes."""

from collections.abc import Iterable
from typing import Protocol

from winnow.storage.place import Advance

MB = 1_000_000


class CopyProgress(Protocol):
    """An observer of copying, in megabytes."""

    def start(self, stage: str, total: int | None, done: int = 0) -> None:
        """Begins a stage, of which `done` is there already."""

    def advance(self, steps: int) -> None:
        """Adds steps to the present stage."""


class NoProgress:
    """A `CopyProgress` that shows nothing."""

    def start(self, stage: str, total: int | None, done: int = 0) -> None:
        pass

    def advance(self, steps: int) -> None:
        pass


def start_copying(
    progress: CopyProgress, stage: str, sizes: Iterable[int], missing: Iterable[int]
) -> Advance:
    """Begins a stage of copying files, and returns what counts its bytes.

    Args:
        progress: the observer.
        stage: what is done, for people.
        sizes: the bytes of each file.
        missing: the bytes of each file that is not there yet.

    """
    total = sum(sizes)
    progress.start(stage, total // MB, (total - sum(missing)) // MB)
    pending = 0

    def advance(count: int) -> None:
        nonlocal pending
        whole, pending = divmod(pending + count, MB)
        if whole:
            progress.advance(whole)

    return advance
