"""The manifest of precomputed data beside a shard, such as `states.json`.

The data is optional: a shard is complete without it, and its checksums do not cover it.
"""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from winnow.errors import ArtefactError
from winnow.files.checksummed_json import (
    check_checksum,
    first_violation,
    open_json,
    read_json_object,
    to_checksummed_json,
)
from winnow.files.durable import write_durably
from winnow.files.opened import OpenFile
from winnow.reading.states_kind import READER_STATES, StatesKind

FILES = STATES_FILE, DATA, STARTS = READER_STATES.files


class StatesManifest(BaseModel):
    """The content of the manifest: data of one model for one generation of a shard."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    format: int
    """Number of the format of the data; see `StatesKind.format`."""
    fingerprint: str
    """Fingerprint of the model, such as a reader's lower layers."""
    generation: str
    """Generation of the shard."""
    width: int = Field(gt=0, le=2**16)
    """Number of values of each token."""
    tokens: int = Field(ge=0)
    """Number of tokens of all passages; those of all windows of a split reader."""
    bytes: int = Field(ge=0)
    """Size of the data file."""
    sha256: str
    """Checksum of the data file, which also has a checksum of each passage."""
    starts_bytes: int = Field(ge=0)
    """Size of the file with the byte offsets of each row's data."""
    starts_sha256: str
    checksum: str = ""
    """Checksum of the manifest itself."""


def read_states_manifest(directory: Path, kind: StatesKind = READER_STATES) -> StatesManifest:
    """Reads the manifest beside a shard; raises ArtefactError if it is missing or invalid."""
    return open_states_manifest(directory, kind)[0]


def open_states_manifest(
    directory: Path, kind: StatesKind = READER_STATES
) -> tuple[StatesManifest, OpenFile]:
    """Reads the manifest; returns it with its file. Raises ArtefactError if it is missing or
    invalid.
    """
    path = directory / kind.manifest
    file = open_json(path, f"a shard with {kind.noun}")
    text, content = read_json_object(file)
    check_checksum(text, content, path)
    number = content.get("format")
    if number not in kind.formats:
        known = " and ".join(map(str, kind.formats))
        raise ArtefactError(f"{path} has format {number!r}, this version reads {known}")
    try:
        return StatesManifest.model_validate(content), file
    except ValidationError as error:
        raise ArtefactError(f"{path} is damaged: {first_violation(error)}") from error


def write_states_manifest(
    directory: Path, manifest: StatesManifest, kind: StatesKind = READER_STATES
) -> None:
    """Writes the manifest beside a shard, which makes the data valid."""
    write_durably(directory / kind.manifest, to_checksummed_json(manifest.model_dump()).encode())
