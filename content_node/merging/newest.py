"""Opens the newest good generation of a shard, from which a node starts.

Files of an interrupted merge are removed. A generation with damaged derived files is repaired. If a
generation's database is damaged, the generation before is opened, provided that the log still has
all writes since then; otherwise opening fails.
"""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import structlog

from winnow.content_node.live.reading import log_path
from winnow.content_node.merging.names import LIVE, damaged_path, generation_sequence, newest_first
from winnow.content_node.merging.repair import UnrepairableError, manifest_of_generation, repair
from winnow.content_node.merging.tidying import list_names, remove_abandoned_merge
from winnow.content_node.shard.manifest import ShardManifest, read_shard_manifest
from winnow.errors import ArtefactError, IdentityError
from winnow.files.durable import sync_directory

_log = structlog.get_logger("content_node")
Base = TypeVar("Base")


def open_newest(
    shard: Path, trimmed: int, open_base: Callable[[Path], Base], *, feeding: bool
) -> Base:
    """Opens the newest merged generation of a shard; without one, the shard as it was built.

    `trimmed` is the last write that was trimmed from the log. Files are repaired, moved or removed
    only with `feeding`. No merge may run meanwhile. Raises ArtefactError if the generation cannot
    be repaired, and IdentityError if it is of another shard.
    """
    names = list_names(shard)
    if feeding:
        remove_abandoned_merge(shard)
    built = read_shard_manifest(shard)
    for name in newest_first(names):
        directory = shard / LIVE / name
        try:
            _check_identity(directory, built)
            base = _open_or_repair(directory, shard, open_base, feeding)
        except UnrepairableError as error:
            previous = _previous_sequence(name, names)
            if not feeding or trimmed > previous or not log_path(shard).exists():
                raise ArtefactError(
                    f"{error}; restore the shard from a snapshot, or copy it from a replica"
                ) from error
            # the log still has all writes since the previous generation
            _log.error("damaged generation moved aside", reason=str(error), before=previous)
            _move_aside(directory)
        else:
            if feeding:
                _make_durable(directory)
            return base
    return open_base(shard)


def newest_name(shard: Path) -> str:
    """Returns the name of the newest merged generation; empty if there is none.

    Raises ArtefactError if the directory cannot be read.
    """
    return next(iter(newest_first(list_names(shard))), "")


def _open_or_repair(
    directory: Path, shard: Path, open_base: Callable[[Path], Base], feeding: bool
) -> Base:
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

    A merge that was killed after the rename may not have done so.
    """
    try:
        sync_directory(directory.parent)
    except OSError as error:
        raise ArtefactError(
            f"cannot sync {directory.parent}, which holds the generation {directory.name}: "
            f"{error.strerror}"
        ) from error


def _check_identity(directory: Path, built: ShardManifest) -> None:
    """Checks that a generation belongs to the shard whose manifest is `built`.

    Raises IdentityError if it does not, and UnrepairableError if it has no good manifest.
    """
    manifest = manifest_of_generation(directory)
    sequence = generation_sequence(directory.name)
    if (
        _generation_identity(built) != _generation_identity(manifest)
        or manifest.sequence != sequence
    ):
        raise IdentityError(
            f"{directory} holds shard {manifest.shard} of index {manifest.index_id} up to write "
            f"{manifest.sequence}, but lies in shard {built.shard} of index {built.index_id}: move "
            f"{directory.parent} away"
        )


def _generation_identity(manifest: ShardManifest) -> tuple[object, ...]:
    return (
        *(manifest.index_id, manifest.shard, manifest.shards),
        *(manifest.dimension, manifest.encoding_fingerprint),
    )


def _previous_sequence(name: str, names: list[str]) -> int:
    """Returns the last write of the generation before `name`; 0 for the shard as it was built."""
    older = (each for each in newest_first(names) if each < name)
    return generation_sequence(next(older, "")) or 0


def _move_aside(directory: Path) -> None:
    aside = damaged_path(directory)
    try:
        shutil.rmtree(aside, ignore_errors=True)
        directory.rename(aside)
    except OSError as error:
        raise ArtefactError(
            f"cannot move the damaged {directory} to {aside}: {error.strerror}"
        ) from error
