"""The manifest of the precomputed states beside a shard, `states.json`.

States are optional: a shard is complete without them, and its checksums do not cover them.
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

FORMAT = 2
"""The first format with a checksum of `STARTS`."""
STATES_FILE, DATA, STARTS = "states.json", "states.bin", "states-starts.npy"
FILES = (STATES_FILE, DATA, STARTS)


class StatesManifest(BaseModel):
    """The content of `states.json`: states of one reader for one generation of a shard."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    format: int = FORMAT
    fingerprint: str
    """Fingerprint of the reader's lower layers."""
    generation: str
    """Generation of the shard."""
    width: int = Field(gt=0, le=2**16)
    """Number of values per token state."""
    tokens: int = Field(ge=0)
    """Number of tokens of all windows of all passages."""
    bytes: int = Field(ge=0)
    """Size of `DATA`."""
    sha256: str
    """Checksum of `DATA`, which also has a checksum of each passage."""
    starts_bytes: int = Field(ge=0)
    """Size of `STARTS`, the byte offsets of each row's states in `DATA`."""
    starts_sha256: str
    checksum: str = ""
    """Checksum of the manifest itself."""


def read_states_manifest(directory: Path) -> StatesManifest:
    """Reads `states.json` of a shard; raises ArtefactError if it is missing or invalid."""
    return open_states_manifest(directory)[0]


def open_states_manifest(directory: Path) -> tuple[StatesManifest, OpenFile]:
    """Reads `states.json`; returns it with its file. Raises ArtefactError if it is missing or
    invalid.
    """
    path = directory / STATES_FILE
    file = open_json(path, "a shard with states")
    text, content = read_json_object(file)
    check_checksum(text, content, path)
    if content.get("format") != FORMAT:
        raise ArtefactError(
            f"{path} has format {content.get('format')!r}, this version reads {FORMAT}"
        )
    try:
        return StatesManifest.model_validate(content), file
    except ValidationError as error:
        raise ArtefactError(f"{path} is damaged: {first_violation(error)}") from error


def write_states_manifest(directory: Path, manifest: StatesManifest) -> None:
    """Writes `states.json` beside a shard, which makes the states valid."""
    write_durably(directory / STATES_FILE, to_checksummed_json(manifest.model_dump()).encode())
