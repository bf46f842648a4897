"""The generation from which a node starts: the newest one that is good.

Removes what an interrupted merge left. A generation with damaged derived files is repaired. One
with a damaged database is an error that names it, unless the log reaches back to the generation
before.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import structlog

from winnow.content_node.live.reading import LIVE, log_path
from winnow.content_node.merging.names import damaged_path, newest_first, sequence_of
from winnow.content_node.merging.repair import BeyondRepairError, repair, whole_manifest
from winnow.content_node.merging.tidying import names_in, remove_unfinished
from winnow.content_node.shard.manifest import ShardManifest, read_shard_manifest
from winnow.errors import ArtefactError, IdentityError
from winnow.files.durable import sync_directory

_log = structlog.get_logger("content_node")
Base = TypeVar("Base")


def open_newest(
    shard: Path, trimmed: int, open_base: Callable[[Path], Base], *, feeding: bool
) -> Base:
    """Opens the newest generation of a shard, or the shard as it was built if that is the newest.

    `trimmed` is the last write that the log has lost by trimming. Only with `feeding` does anything
    on the disk change. Call it while nothing can be merged. Raises ArtefactError if the generation
    is damaged beyond repair, and IdentityError if it is of another shard.
    """
    names = names_in(shard)
    if feeding:
        remove_unfinished(shard)
    built = read_shard_manifest(shard)
    for name in newest_first(names):
        directory = shard / LIVE / name
        try:
            _expect_of(directory, built)
            base = _opened(directory, shard, open_base, feeding)
        except BeyondRepairError as error:
            before = _before(name, names)
            if not feeding or trimmed > before or not log_path(shard).exists():
                raise ArtefactError(
                    f"{error}; restore the shard from a snapshot, or copy it from a replica"
                ) from error
            # the log has all that it held
            _log.error("damaged generation moved aside", reason=str(error), before=before)
            _put_aside(directory)
        else:
            if feeding:
                _make_durable(directory)
            return base
    return open_base(shard)


def newest_name(shard: Path) -> str:
    """The name of the newest merged generation; empty if there is none.

    Raises ArtefactError if the directory cannot be read.
    """
    return next(iter(newest_first(names_in(shard))), "")


def _opened(directory: Path, shard: Path, open_base: Callable[[Path], Base], feeding: bool) -> Base:
    try:
        return open_base(directory)
    except ArtefactError as error:
        if not feeding:
            raise
        repaired = repair(directory, [shard])
        if not repaired:
            raise
        _log.warning(
            "damaged files of a generation rebuilt from its database",
            directory=str(directory),
            files=repaired,
            reason=str(error),
        )
    return open_base(directory)


def _make_durable(directory: Path) -> None:
    """Makes the rename of a generation durable, before the log is trimmed.

    The merge that put it in place may have been killed before it did.
    """
    try:
        sync_directory(directory.parent)
    except OSError as error:
        raise ArtefactError(f"{directory} cannot be made durable: {error.strerror}") from error


def _expect_of(directory: Path, built: ShardManifest) -> None:
    """Raises IdentityError if a generation is of another shard, BeyondRepairError if it has no
    manifest.
    """
    found = whole_manifest(directory)
    if _identity(built) != _identity(found) or found.sequence != sequence_of(directory.name):
        raise IdentityError(
            f"{directory} holds shard {found.shard} of index {found.index_id} up to write "
            f"{found.sequence}, and lies in shard {built.shard} of index {built.index_id}: move "
            f"{directory.parent} away"
        )


def _identity(manifest: ShardManifest) -> tuple[object, ...]:
    return (
        *(manifest.index_id, manifest.shard, manifest.shards),
        *(manifest.dimension, manifest.encoding_fingerprint),
    )


def _before(name: str, names: list[str]) -> int:
    """The last write in the generation before this one."""
    older = [sequence_of(each) or 0 for each in newest_first(names) if each < name]
    return older[0] if older else 0


def _put_aside(directory: Path) -> None:
    aside = damaged_path(directory)
    try:
        shutil.rmtree(aside, ignore_errors=True)
        directory.rename(aside)
    except OSError as error:
        raise ArtefactError(f"{directory} cannot be put aside: {error.strerror}") from error
