"""Finds the shards in the directory of an index."""

from pathlib import Path

from winnow.domain.partition import halves_of
from winnow.domain.shard import INDEX_FILE, MAX_SHARDS, shard_name
from winnow.errors import ArtefactError
from winnow.files.checksummed_json import (
    CHECKSUM_FIELD,
    has_valid_checksum,
    open_json,
    read_json_object,
)


def shard_directories(index: Path) -> list[Path]:
    """Returns the directories of the shards of an index, in order.

    Raises ArtefactError if `index` is not an index, or a shard was split (see `built_shards`).
    """
    path = index / INDEX_FILE
    if not path.is_file() and index.is_dir() and (index.parent / INDEX_FILE).is_file():
        raise ArtefactError(f"{index} is a part of an index: use {index.parent}")
    if not path.is_file():
        raise ArtefactError(
            f"{index} is not an index, since it has no {INDEX_FILE}: build one with `winnow index "
            f"build`"
        )
    text, manifest = read_json_object(open_json(path, "an index"))
    if CHECKSUM_FIELD in manifest and not has_valid_checksum(text, manifest):
        raise ArtefactError(f"{path} is damaged: its checksum does not match; copy it again")
    shards = manifest.get("shards")
    if type(shards) is not int or not 1 <= shards <= MAX_SHARDS:
        raise ArtefactError(
            f"{path} is damaged: {shards!r} is not a number of shards from 1 to "
            f"{MAX_SHARDS}; copy it again, or build the index again"
        )
    return built_shards(index, shards)


def built_shards(index: Path, shards: int) -> list[Path]:
    """Returns the directories of the shards that an index was built with, in order.

    Raises ArtefactError if a shard has been split, so that only its halves exist.
    """
    directories = [index / shard_name(shard, shards) for shard in range(shards)]
    for shard, directory in enumerate(directories):
        halves = [index / shard_name(half, shards) for half in halves_of(shard, shards)]
        if not directory.exists() and (present := [each for each in halves if each.exists()]):
            raise ArtefactError(
                f"shard {shard} of {index} was split: a node with --assignment and --data {index} "
                f"serves its halves; `winnow index snapshot` copies a shard by its directory, such "
                f"as {present[0]}"
            )
    return directories
