"""Copying the files of a snapshot to its place: each once, also if several snapshots have it."""

from collections.abc import Iterable

from winnow.content_node.snapshots.contents import Item
from winnow.content_node.snapshots.finding import FILES
from winnow.storage import Place
from winnow.storage.place import Advance
from winnow.storage.progress import CopyProgress, start_copying


class SnapshotUpload:
    """Puts files where they are not yet."""

    def __init__(self, place: Place, progress: CopyProgress) -> None:
        self._place, self._progress = place, progress
        self._there = place.sizes(FILES)

    def upload(self, stage: str, items: Iterable[Item]) -> None:
        """Copies those of `items` that are not there.

        Raises:
            ArtefactError: one is not what its manifest says, or was written to.
            UnavailableError: the place cannot be written.

        """
        items = list(items)
        missing = [item for item in items if not self._has(item)]
        sizes, ahead = ([item.entry.bytes for item in each] for each in (items, missing))
        advance = start_copying(self._progress, stage, sizes, ahead)
        for item in missing:
            self._upload(item, advance)

    def _has(self, item: Item) -> bool:
        """One that was cut off is shorter."""
        return self._there.get(item.entry.sha256) == item.entry.bytes

    def _upload(self, item: Item, advance: Advance) -> None:
        if not item.verified:
            item.file.verify(item.entry.sha256, item.entry.bytes)
        self._place.upload(f"{FILES}/{item.entry.sha256}", item.file.link, advance)
        item.file.check()
        self._there[item.entry.sha256] = item.entry.bytes
