"""Copying the files of a snapshot to its place: each once, whatever snapshot it is of."""

from collections.abc import Callable, Iterable
from typing import Protocol

from winnow.content_node.snapshots.contents import Item
from winnow.content_node.snapshots.place import FILES, Advance, Place

MB = 1_000_000


class Progress(Protocol):
    """Told how copying goes on, in megabytes."""

    def start(self, stage: str, total: int | None, done: int = 0) -> None:
        """A stage begins; `done`: what is there already."""

    def advance(self, steps: int) -> None:
        """Steps of the present stage are done."""


class Copying:
    """Puts files where they are not yet."""

    def __init__(self, place: Place, progress: Progress) -> None:
        self._place, self._progress = place, progress
        self._there = place.sizes(FILES)

    def put(self, stage: str, items: Iterable[Item]) -> None:
        """Copies those of `items` that are not there.

        Raises:
            ArtefactError: one is not what its manifest says, or was written to.
            UnavailableError: the place cannot be written.

        """
        items = list(items)
        missing = [item for item in items if not self._has(item)]
        total = sum(item.entry.bytes for item in items)
        ahead = sum(item.entry.bytes for item in missing)
        self._progress.start(stage, total // MB, (total - ahead) // MB)
        advance = in_megabytes(self._progress.advance)
        for item in missing:
            self._put(item, advance)

    def _has(self, item: Item) -> bool:
        """One that was cut off is shorter."""
        return self._there.get(item.entry.sha256) == item.entry.bytes

    def _put(self, item: Item, advance: Advance) -> None:
        if not item.verified:
            item.file.verify(item.entry.sha256, item.entry.bytes)
        self._place.put(item.file.link, advance, FILES, item.entry.sha256)
        item.file.check()
        self._there[item.entry.sha256] = item.entry.bytes


def in_megabytes(advance: Callable[[int], None]) -> Advance:
    """Takes bytes, and tells `advance` each megabyte."""
    pending = 0

    def told(count: int) -> None:
        nonlocal pending
        whole, pending = divmod(pending + count, MB)
        if whole:
            advance(whole)

    return told
