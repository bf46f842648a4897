"""Files of a snapshot, open, so that nothing that becomes of their names changes what is copied."""

import hashlib
from dataclasses import dataclass, replace
from pathlib import Path

import structlog
from pydantic import ValidationError

from winnow.content_node.shard.manifest import FileEntry, ShardManifest, open_shard_manifest
from winnow.content_node.states.manifest import DATA, STARTS, STATES_FILE, open_states_manifest
from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile

_log = structlog.get_logger("content_node")


@dataclass(frozen=True, slots=True)
class Item:
    """A file of a snapshot."""

    path: str
    """In the directory that the snapshot is of."""
    file: OpenFile
    entry: FileEntry
    verified: bool = False
    """Whether `entry` was worked out from the file, and not only claimed for it."""

    def within(self, directory: str) -> "Item":
        """The same, seen from the directory above."""
        return replace(self, path=f"{directory}/{self.path}")


def opened_base(directory: Path) -> tuple[ShardManifest, list[Item]]:
    """A directory that was built or merged: it never changes, and its manifest vouches for it.

    Raises:
        ArtefactError: a file is missing, or there is no good manifest.

    """
    manifest, named = open_shard_manifest(directory)
    items = [
        Item(name, OpenFile(directory / name), entry) for name, entry in manifest.files.items()
    ]
    return manifest, [*items, item_of(named)]


def item_of(file: OpenFile) -> Item:
    """A file that no manifest vouches for."""
    with file.reader() as reader:
        digest = hashlib.file_digest(reader, "sha256").hexdigest()
    return Item(file.path.name, file, FileEntry(sha256=digest, bytes=file.size), verified=True)


def opened_states(directory: Path, generation: str) -> list[Item]:
    """The states beside a base, as their manifest vouches for them; none where there are none, or
    they are not of this generation.
    """
    if not (directory / STATES_FILE).exists():
        return []
    try:
        manifest, named = open_states_manifest(directory)
        if manifest.generation != generation:
            raise ArtefactError("they are of another generation")
        data, starts = OpenFile(directory / DATA), OpenFile(directory / STARTS)
        of_data = FileEntry(sha256=manifest.sha256, bytes=manifest.bytes)
        of_starts = FileEntry(sha256=manifest.starts_sha256, bytes=manifest.starts_bytes)
        return [Item(DATA, data, of_data), Item(STARTS, starts, of_starts), item_of(named)]
    except (ArtefactError, ValidationError) as error:
        warn_without_states(directory, str(error))
        return []


def warn_without_states(directory: Path, reason: str) -> None:
    """Says that there are states that a snapshot is taken without."""
    _log.warning(
        "the states of the shard are not in the snapshot", directory=str(directory), reason=reason
    )
