"""Finds the shards in the directory of an index."""

from collections.abc import Collection, Iterator
from pathlib import Path

from winnow.domain.partition import ancestors_of, halves_of
from winnow.domain.shard import INDEX_FILE, MAX_SHARDS, shard_name, shard_number_of
from winnow.errors import ArtefactError
from winnow.files.checksummed_json import (
    CHECKSUM_FIELD,
    check_checksum,
    open_json,
    read_json_object,
)
from winnow.storage.partial import PARTIAL


def shard_directories(index: Path) -> list[Path]:
    """The directories of the shards of an index, in order.

    Raises ArtefactError if `index` is not an index.
    """
    path = index / INDEX_FILE
    if not path.is_file() and index.is_dir() and (index.parent / INDEX_FILE).is_file():
        raise ArtefactError(f"{index} is a part of an index: use {index.parent}")
    if not path.is_file() and _is_unfinished(index):
        raise ArtefactError(
            f"{index} is not finished: wait for the command that makes it, or run that command "
            "again to resume its work"
        )
    if not path.is_file():
        raise ArtefactError(
            f"{index} is not an index, since it has no {INDEX_FILE}: build one with `winnow index "
            f"build`"
        )
    text, manifest = read_json_object(open_json(path, "an index"))
    if CHECKSUM_FIELD in manifest:
        check_checksum(text, manifest, path, "; copy it again")
    shards = manifest.get("shards")
    if type(shards) is not int or not 1 <= shards <= MAX_SHARDS:
        raise ArtefactError(
            f"{path} is damaged: {shards!r} is not a number of shards from 1 to "
            f"{MAX_SHARDS}; copy it again, or build the index again"
        )
    return present_shards(index, shards)


def _is_unfinished(index: Path) -> bool:
    """Whether a build or a restore of this directory is running or was interrupted."""
    is_partial = index.name.endswith(PARTIAL) and index.is_dir()
    return is_partial or Path(f"{index}{PARTIAL}").is_dir()


def present_shards(index: Path, shards: int) -> list[Path]:
    """The directories of the shards of an index that was built with `shards` of them, in order.

    A shard that was split is replaced by its halves. A shard or a half that is missing is listed
    all the same.
    """
    found = [shard_number_of(each.name) for each in index.glob(f"shard-*-of-{shards:05d}")]
    present = [number for number in found if number is not None]
    numbers = [part for shard in range(shards) for part in _parts(shard, shards, present)]
    return [index / shard_name(number, shards) for number in numbers]


def _parts(shard: int, shards: int, present: Collection[int]) -> Iterator[int]:
    """Yields a shard, or the parts of it that are present instead."""
    if shard in present or not any(shard in ancestors_of(each, shards) for each in present):
        yield shard
        return
    for half in halves_of(shard, shards):
        yield from _parts(half, shards, present)
