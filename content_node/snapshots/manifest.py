"""The manifest of a snapshot, which is written last.

It has a checksum of itself and of every file.
"""

from datetime import datetime
from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from winnow.content_node.shard.manifest import SHARD_FILE, FileEntry
from winnow.domain.partition import Partition, is_shard_number
from winnow.domain.shard import INDEX_FILE, MAX_SHARDS, shard_name
from winnow.errors import ArtefactError
from winnow.files.checksummed_json import (
    CHECKSUM_FIELD,
    first_violation,
    parse_checksummed_json,
    to_checksummed_json,
)

FORMAT = 1


def _check_path(path: str) -> str:
    """Checks that a path is below the restored directory, so that a restore may write to it."""
    if any(part in ("", ".", "..") or "\\" in part or "\0" in part for part in path.split("/")):
        raise ValueError(f"{path!r} is not a path below the index")
    return path


_Path = Annotated[str, AfterValidator(_check_path)]


class _StrictModel(BaseModel):
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class SnapshotShard(_StrictModel):
    """A shard in a snapshot."""

    shard: Annotated[int, Field(ge=0)]
    """Number of the shard, counted from 0."""
    sequence: Annotated[int, Field(ge=0)]
    """The number of the last write that the snapshot has; 0 if there was none."""
    passages: Annotated[int, Field(ge=0)]
    """Number of passages in the newest generation, without later writes."""


class Snapshot(_StrictModel):
    """The manifest of a snapshot of an index, or of one of its shards."""

    format: Annotated[int, Field(ge=FORMAT, le=FORMAT)] = FORMAT
    name: Annotated[str, Field(pattern="^[0-9A-Za-z-]{1,64}$")]
    taken: str
    """Time of the snapshot, as ISO 8601."""
    index_id: str
    shards: Annotated[int, Field(gt=0, le=MAX_SHARDS)]
    """Number of shards that the index was built with."""
    parts: Annotated[tuple[SnapshotShard, ...], Field(min_length=1)]
    """The shards that the snapshot has, in their order."""
    files: dict[_Path, FileEntry]
    """The files by their paths relative to the directory of the index."""
    kind: Literal["winnow snapshot"] = "winnow snapshot"

    @model_validator(mode="after")
    def _check_consistency(self) -> Self:
        names = {self.directory(part.shard) for part in self.parts}
        strays = [path for path in self.files if path.split("/")[0] not in {*names, INDEX_FILE}]
        if strays:
            raise ValueError(f"{strays[0]} belongs to none of its shards")
        if wrong := [
            each.shard for each in self.parts if not is_shard_number(each.shard, self.shards)
        ]:
            raise ValueError(f"there can be no shard {wrong[0]} of {self.shards}: the first is 0")
        if len(names) < len(self.parts):
            raise ValueError("it lists a shard twice")
        if empty := [name for name in sorted(names) if f"{name}/{SHARD_FILE}" not in self.files]:
            raise ValueError(f"{empty[0]} has no {SHARD_FILE} in it")
        return self

    @property
    def whole(self) -> bool:
        """Whether the snapshot has every shard of the index."""
        if INDEX_FILE not in self.files:
            return False
        try:
            Partition(self.shards, {part.shard for part in self.parts})
        except ValueError:
            return False
        return True

    @property
    def time(self) -> datetime:
        """The time of the snapshot."""
        return datetime.fromisoformat(self.taken)

    @property
    def size(self) -> int:
        """The total size of all files, in bytes."""
        return sum(entry.bytes for entry in self.files.values())

    def directory(self, shard: int) -> str:
        """Returns the directory name of a shard."""
        return shard_name(shard, self.shards)

    def files_below(self, directory: str) -> dict[str, FileEntry]:
        """Returns the files below `directory`, by their paths relative to it.

        Returns all files of the index if `directory` is empty.
        """
        start = f"{directory}/" if directory else ""
        return {
            path.removeprefix(start): entry
            for path, entry in self.files.items()
            if path.startswith(start)
        }

    def encode(self) -> bytes:
        """Encodes the manifest as JSON with its checksum."""
        return to_checksummed_json(self.model_dump(mode="json")).encode()


def parse_snapshot(data: bytes, location: str) -> Snapshot:
    """Parses the content of a manifest; errors name `location`.

    Raises ArtefactError if the content was altered, or has another format.
    """
    content = parse_checksummed_json(data, location)
    fields = {name: value for name, value in content.items() if name != CHECKSUM_FIELD}
    try:
        return Snapshot.model_validate(fields, strict=False)
    except ValidationError as error:
        raise ArtefactError(f"{location} cannot be used: {first_violation(error)}") from error
