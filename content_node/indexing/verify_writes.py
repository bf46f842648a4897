"""Checks the writes to a shard: its newest generation, and its log.

A node may write and merge meanwhile: no lock is taken, and the log is read from a copy.
"""

from dataclasses import dataclass
from pathlib import Path

from winnow.content_node.indexing.contents import GraphTarget, IndexContents, check_contents
from winnow.content_node.live.copying import check_in_use
from winnow.content_node.live.entry import Logged
from winnow.content_node.live.opening import expect_base
from winnow.content_node.live.reading import LIVE
from winnow.content_node.merging.newest import newest_name, open_newest
from winnow.content_node.shard.manifest import ShardManifest, read_shard_manifest
from winnow.content_node.shard.store import PassageStore
from winnow.errors import ArtefactError, UnavailableError
from winnow.files.opened import OpenFile

_TRIES = 5
"""Attempts; each takes less time than a merge."""
_TOLD = 3
"""Faults of one log that are reported: after a wrong write later ones may be wrong, too."""
_FLOAT_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenContents:
    """The findings in the newest generation and the log."""

    passages: int
    """The number of passages with all writes."""
    sequence: int
    unmerged: int
    """The number of writes that only the log has."""
    recall: float | None
    """The recall of the newest graph; None if that is the graph that was built."""
    faults: tuple[str, ...]


def check_writes(shard: Path, asked: GraphTarget) -> WrittenContents | None:
    """Checks the writes to a shard; None if there were none.

    Raises:
        ArtefactError: it is damaged.
        UnavailableError: the log cannot be copied, or the shard was merged again and again.

    """
    if not (shard / LIVE).exists():
        return None
    for _ in range(_TRIES):
        name = newest_name(shard)
        try:
            return _checked(shard, asked)
        except ArtefactError:
            if newest_name(shard) == name:
                raise
            # a merge has removed the files that were read, or trimmed the log
    raise UnavailableError(
        f"{shard} was merged again and again while it was checked: verify it later"
    )


def _checked(shard: Path, asked: GraphTarget) -> WrittenContents | None:
    base, found = open_newest(
        shard, 0, lambda each: (each, _generation(each, shard, asked)), feeding=False
    )
    manifest = read_shard_manifest(base)
    # it stays open even if a merge removes it
    store = PassageStore(OpenFile(base / manifest.store))
    try:
        replay = _Replay(store, manifest)
        log = check_in_use(shard, lambda _: replay.take)
    finally:
        store.close()
    if log is None:
        expect_base(manifest, shard, "", 0, 0)
        return None
    state, trimmed = log
    expect_base(manifest, shard, state.log_id, trimmed.last, state.last)
    merged = [f"{base.name}: {fault}" for fault in found.faults] if found else []
    return WrittenContents(
        passages=replay.passages,
        sequence=state.last,
        unmerged=state.last - manifest.sequence,
        recall=found.recall if found else None,
        faults=(*merged, *replay.faults[:_TOLD]),
    )


def _generation(directory: Path, shard: Path, asked: GraphTarget) -> IndexContents | None:
    """The findings in a generation; None for the one that was built, which was checked before."""
    if directory == shard:
        return None
    return check_contents(directory, read_shard_manifest(directory), asked)


class _Replay:
    """Counts the passages that a base and the writes of a log make together."""

    def __init__(self, store: PassageStore, base: ShardManifest) -> None:
        self._store, self._base = store, base
        self._there: dict[str, bool] = {}
        self.passages = base.passages
        self.faults: list[str] = []
        """The faults of writes that do not fit the base."""

    def take(self, write: Logged) -> None:
        if write.sequence <= self._base.sequence:
            return
        there = self._there.get(write.id)
        if there is None:
            there = self._store.locate(write.id) is not None
        put = write.put
        if there != (write.removed is not None):
            self.faults.append(
                f"write {write.sequence} and its base do not agree whether there was a passage "
                f"{write.id}: copy the shard again"
            )
        if put is not None and len(put.vector) != self._base.dimension * _FLOAT_BYTES:
            self.faults.append(
                f"write {write.sequence} has a vector of {len(put.vector) / _FLOAT_BYTES:g} "
                f"values, its base has {self._base.dimension}"
            )
        self._there[write.id] = put is not None
        self.passages += (put is not None) - there
