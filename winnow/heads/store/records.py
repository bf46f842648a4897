"""The content of a store's small files: `store.json`, and `current.json` of each head.

Each file contains its own checksum. Does not read or write files.
"""

from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from winnow.errors import ArtefactError
from winnow.files.checksummed_json import (
    first_violation,
    parse_checksummed_json,
    to_checksummed_json,
)
from winnow.heads.manifest import EncoderEntry

FORMAT = 1
STORE, CURRENT = "store.json", "current.json"


class _Record(BaseModel):
    """The content of a JSON file that contains its own checksum."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    def to_bytes(self) -> bytes:
        """Returns the content of the file."""
        return to_checksummed_json(self.model_dump(mode="json")).encode()


class HeadRecord(_Record):
    """The record of a head: the served version, and whether the head is pinned."""

    version: int = Field(ge=0)
    """The served version; 0 if none was activated yet."""
    previous: int = Field(default=0, ge=0)
    """The version that was served before; 0 if there was none."""
    pinned: bool = False
    """Whether servers keep the head in memory once they have loaded it."""
    moved_to: str = Field(default="", max_length=200)
    """The encoder group that the head moved to; empty if it did not move."""


class StoreRecord(_Record):
    """The record of a store: the encoder of all its heads."""

    format: Annotated[int, Field(ge=FORMAT, le=FORMAT)] = FORMAT
    encoder: EncoderEntry


RecordType = TypeVar("RecordType", bound=_Record)


def parse_record(data: bytes, path: str, record_type: type[RecordType]) -> RecordType:
    """Parses the content of a record's file; `path` names it in errors.

    Raises ArtefactError if the checksum or the format does not match.
    """
    content = parse_checksummed_json(data, path)
    try:
        return record_type.model_validate(content)
    except ValidationError as error:
        raise ArtefactError(f"{path} cannot be used: {first_violation(error)}") from error
