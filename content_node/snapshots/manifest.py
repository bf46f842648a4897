"""The manifest of a snapshot.

Knows its content; does not know where it lies. It is written last, vouches for itself, and for
every file by its checksum.
"""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from winnow.content_node.shard.manifest import SHARD_FILE, FileEntry
from winnow.domain.shard import INDEX_FILE, MAX_SHARDS, shard_name
from winnow.errors import ArtefactError
from winnow.files.checksummed_json import (
    CHECKSUM_FIELD,
    first_violation,
    parse_checksummed_json,
    to_checksummed_json,
)

FORMAT = 1


def _below(path: str) -> str:
    """Checks a path that a restore writes to."""
    if any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in path.split("/")):
        raise ValueError(f"{path!r} is no path below an index")
    return path


_Path = Annotated[str, AfterValidator(_below)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class SnapshotShard(_Part):
    """A shard in a snapshot."""

    shard: Annotated[int, Field(ge=0)]
    sequence: Annotated[int, Field(ge=0)]
    """The last write that is in the snapshot; 0 where nothing was written since the build."""
    passages: Annotated[int, Field(ge=0)]
    """Passages of the generation; later writes are in the log."""


class Snapshot(_Part):
    """A snapshot of an index, or of one shard of it."""

    format: Annotated[int, Field(ge=FORMAT, le=FORMAT)] = FORMAT
    name: Annotated[str, Field(pattern="^[0-9A-Za-z-]{1,64}$")]
    taken: str
    """When, as ISO 8601."""
    index_id: str
    shards: Annotated[int, Field(gt=0, le=MAX_SHARDS)]
    """Of the index."""
    parts: Annotated[tuple[SnapshotShard, ...], Field(min_length=1)]
    """The shards that are in the snapshot, in their order."""
    files: dict[_Path, FileEntry]
    """By their paths in the directory of the index."""
    kind: Literal["winnow snapshot"] = "winnow snapshot"

    @model_validator(mode="after")
    def _belongs_together(self) -> Self:
        names = {self.place(part.shard) for part in self.parts}
        strays = [path for path in self.files if path.split("/")[0] not in {*names, INDEX_FILE}]
        if strays:
            raise ValueError(f"{strays[0]} is of no shard that it names")
        if wrong := [part.shard for part in self.parts if part.shard >= self.shards]:
            raise ValueError(f"there is no shard {wrong[0]} of {self.shards}: they count from 0")
        if len(names) < len(self.parts):
            raise ValueError("it names a shard twice")
        if empty := [name for name in sorted(names) if f"{name}/{SHARD_FILE}" not in self.files]:
            raise ValueError(f"{empty[0]} has no {SHARD_FILE} in it")
        return self

    @property
    def whole(self) -> bool:
        """Whether every shard of the index is there."""
        return INDEX_FILE in self.files and {part.shard for part in self.parts} == set(
            range(self.shards)
        )

    @property
    def time(self) -> datetime:
        """When it was taken."""
        return datetime.fromisoformat(self.taken)

    @property
    def size(self) -> int:
        """Bytes of all files."""
        return sum(entry.bytes for entry in self.files.values())

    def place(self, shard: int) -> str:
        """The directory of a shard in the index."""
        return shard_name(shard, self.shards)

    def below(self, directory: str) -> dict[str, FileEntry]:
        """The files in a directory of the index by their paths in it; all files if it is empty."""
        start = f"{directory}/" if directory else ""
        return {
            path.removeprefix(start): entry
            for path, entry in self.files.items()
            if path.startswith(start)
        }

    def written(self) -> bytes:
        """The content of the manifest's file."""
        return to_checksummed_json(self.model_dump(mode="json")).encode()


def parsed_snapshot(data: bytes, place: str) -> Snapshot:
    """The manifest in a file that `place` names.

    Raises ArtefactError if it is altered, or of another format.
    """
    content = parse_checksummed_json(data, place)
    fields = {name: value for name, value in content.items() if name != CHECKSUM_FIELD}
    try:
        return Snapshot.model_validate(fields, strict=False)
    except ValidationError as error:
        raise ArtefactError(f"{place} cannot be used: {first_violation(error)}") from error
