"""Checks the newest generation of a shard and its log.

A node may write and merge meanwhile: the check takes no lock, and reads a copy of the log.
"""

import contextlib
from dataclasses import dataclass
from pathlib import Path

from winnow.content_node.indexing.contents import GenerationFindings, GraphTarget, check_contents
from winnow.content_node.live.copying import check_live_log
from winnow.content_node.live.log_entry import LoggedWrite
from winnow.content_node.live.opening import check_log_continues_base
from winnow.content_node.merging.names import LIVE
from winnow.content_node.merging.newest import newest_name, open_newest
from winnow.content_node.shard.manifest import ShardManifest, read_shard_manifest
from winnow.content_node.shard.store import PassageStore
from winnow.errors import ArtefactError, UnavailableError
from winnow.files.opened import OpenFile

_MAX_ATTEMPTS = 5
"""Maximum number of attempts. A merge may disturb an attempt, but takes longer than an attempt."""
_MAX_REPORTED = 3
"""Maximum number of reported faults of a log: one wrong write may make later ones wrong."""
_FLOAT_BYTES = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class WriteFindings:
    """The result of checking the newest generation and the log."""

    passages: int
    """Number of passages once all writes are applied."""
    sequence: int
    """The number of the last write."""
    unmerged: int
    """Number of writes that the newest generation lacks."""
    recall: float | None
    """The recall of the newest graph; None if the shard was never merged."""
    faults: tuple[str, ...]


def check_writes(shard: Path, target: GraphTarget) -> WriteFindings | None:
    """Checks the writes to a shard; returns None if there were none.

    Raises:
        ArtefactError: a generation or the log is damaged.
        UnavailableError: the log cannot be copied, or merges disturbed every attempt.

    """
    if not (shard / LIVE).exists():
        return None
    for _ in range(_MAX_ATTEMPTS):
        name = newest_name(shard)
        try:
            return _check_writes(shard, target)
        except (ArtefactError, OSError):
            if newest_name(shard) == name:
                raise
            # a merge has removed the files that were read, or trimmed the log
    raise UnavailableError(f"{shard} was merged in each of {_MAX_ATTEMPTS} checks: verify it later")


def _check_writes(shard: Path, target: GraphTarget) -> WriteFindings | None:
    base, findings = open_newest(
        shard, 0, lambda each: (each, _check_generation(each, shard, target)), feeding=False
    )
    manifest = read_shard_manifest(base)
    # the open file stays readable even if a merge removes it
    with contextlib.closing(PassageStore(OpenFile(base / manifest.store))) as store:
        replay = _Replay(store, manifest)
        log = check_live_log(shard, lambda _: replay.add)
    if log is None:
        check_log_continues_base(manifest, shard, "", 0, 0)
        return None
    state, trimmed = log
    check_log_continues_base(manifest, shard, state.log_id, trimmed.last, state.last)
    merged_faults = [f"{base.name}: {fault}" for fault in findings.faults] if findings else []
    return WriteFindings(
        passages=replay.passages,
        sequence=state.last,
        unmerged=state.last - manifest.sequence,
        recall=findings.recall if findings else None,
        faults=(*merged_faults, *replay.faults[:_MAX_REPORTED]),
    )


def _check_generation(
    directory: Path, shard: Path, target: GraphTarget
) -> GenerationFindings | None:
    """Checks a merged generation; returns None for the built shard, which was checked before."""
    if directory == shard:
        return None
    return check_contents(directory, read_shard_manifest(directory), target)


class _Replay:
    """Applies the writes of a log to a base: counts passages, and checks that the writes fit."""

    def __init__(self, store: PassageStore, base: ShardManifest) -> None:
        self._store, self._base = store, base
        self._exists: dict[str, bool] = {}
        """Whether there is a passage, for each id that was written."""
        self.passages = base.passages
        self.faults: list[str] = []
        """Descriptions of writes that do not fit the base."""

    def add(self, write: LoggedWrite) -> None:
        """Applies a write, unless the base holds it already."""
        if write.sequence <= self._base.sequence:
            return
        existed = self._exists.get(write.id)
        if existed is None:
            existed = self._store.locate(write.id) is not None
        put = write.put
        if existed != (write.removed_words is not None):
            self.faults.append(
                f"write {write.sequence} and its base disagree on whether passage {write.id} "
                "existed before: copy the shard again"
            )
        if put is not None and len(put.vector) != self._base.dimension * _FLOAT_BYTES:
            self.faults.append(
                f"write {write.sequence} has a vector of {len(put.vector) / _FLOAT_BYTES:g} "
                f"values, but its base has {self._base.dimension}"
            )
        self._exists[write.id] = put is not None
        self.passages += (put is not None) - existed
