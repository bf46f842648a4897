"""Checking what was written to a shard since it was built: its newest generation, and its log.

A node may be writing and merging meanwhile: no lock is taken, and the log is read from a copy.
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
"""Each takes less time than a merge."""
_TOLD = 3
"""Faults of one log that are told: where one write is wrong those after it may be, too."""
_FLOAT_BYTES = 4


@dataclass(frozen=True, slots=True)
class Writes:
    """What was found in the newest generation and the log."""

    passages: int
    """With all writes."""
    sequence: int
    unmerged: int
    """Writes that only the log has."""
    recall: float | None
    """Of the newest graph; None if that is the one that was built."""
    faults: tuple[str, ...]


def check_writes(shard: Path, asked: GraphTarget) -> Writes | None:
    """Checks what was written to a shard; None if nothing was.

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
            # a merge has removed what was read, or trimmed the log beyond it
    raise UnavailableError(
        f"{shard} was merged again and again while it was checked: verify it later"
    )


def _checked(shard: Path, asked: GraphTarget) -> Writes | None:
    base, found = open_newest(
        shard, 0, lambda each: (each, _generation(each, shard, asked)), feeding=False
    )
    manifest = read_shard_manifest(base)
    # open from here on, also if a merge removes it
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
    return Writes(
        replay.passages,
        state.last,
        state.last - manifest.sequence,
        found.recall if found else None,
        (*merged, *replay.faults[:_TOLD]),
    )


def _generation(directory: Path, shard: Path, asked: GraphTarget) -> IndexContents | None:
    """None for what was built, which is checked without this."""
    if directory == shard:
        return None
    return check_contents(directory, read_shard_manifest(directory), asked)


class _Replay:
    """Applies the writes of a log to what a base holds, as far as counting needs it."""

    def __init__(self, store: PassageStore, base: ShardManifest) -> None:
        self._store, self._base = store, base
        self._there: dict[str, bool] = {}
        self.passages = base.passages
        self.faults: list[str] = []
        """Where the log does not go on from the base."""

    def take(self, write: Logged) -> None:
        """The next write."""
        if write.sequence <= self._base.sequence:
            return
        there = self._there.get(write.id)
        if there is None:
            there = self._store.entry(write.id) is not None
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
