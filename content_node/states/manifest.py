"""What `states.json` says of the states beside a shard.

They are derived: a shard is whole without them, and no checksum of the shard covers them.
"""

from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from winnow.errors import ArtefactError
from winnow.files.durable import write_durably
from winnow.files.opened import OpenFile
from winnow.files.vouching import first_fault, is_vouched, open_object, read_object, vouched

FORMAT = 2
"""Since then it vouches for where the states of each passage begin, too."""
STATES_FILE, DATA, STARTS = "states.json", "states.bin", "states-starts.npy"
FILES = (STATES_FILE, DATA, STARTS)


class StatesManifest(BaseModel):
    """Of which reader and of which rows the states are."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    format: int = FORMAT
    fingerprint: str
    """Names the lower layers of the reader that made them."""
    generation: str
    """Of the shard whose rows they are of."""
    width: int = Field(gt=0, le=2**16)
    """Values of a state."""
    tokens: int = Field(ge=0)
    """Of all passages, in all windows."""
    bytes: int = Field(ge=0)
    """Of the states."""
    sha256: str
    """Of the states; each passage has a checksum of its own beside that."""
    starts_bytes: int = Field(ge=0)
    """Of the file that says where the states of each row begin."""
    starts_sha256: str
    checksum: str = ""


def read_states_manifest(directory: Path) -> StatesManifest:
    """Reads `states.json` of a shard; raises ArtefactError if there is no good one."""
    return open_states_manifest(directory)[0]


def open_states_manifest(directory: Path) -> tuple[StatesManifest, OpenFile]:
    """The manifest of a shard's states and its file; raises ArtefactError if there is no good
    one.
    """
    path = directory / STATES_FILE
    file = open_object(path, "a shard with states")
    text, content = read_object(file)
    if not is_vouched(text, content):
        raise ArtefactError(f"{path} is damaged: it is not as it was written")
    if content.get("format") != FORMAT:
        raise ArtefactError(
            f"{path} has format {content.get('format')!r}, this version reads {FORMAT}"
        )
    try:
        return StatesManifest.model_validate(content), file
    except ValidationError as error:
        raise ArtefactError(f"{path} is damaged: {first_fault(error)}") from error


def write_states_manifest(directory: Path, manifest: StatesManifest) -> None:
    """Puts `states.json` beside a shard: from now on the states are used."""
    write_durably(directory / STATES_FILE, vouched(manifest.model_dump()).encode())
