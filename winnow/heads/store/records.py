"""The two small files of a store: `store.json` of all heads, and `current.json` of each.

Both vouch for themselves. Knows their content; does not know where they lie.
"""

from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from winnow.errors import ArtefactError
from winnow.files.vouching import first_fault, vouched, vouched_object
from winnow.heads.manifest import EncoderEntry

FORMAT = 1
STORE, CURRENT = "store.json", "current.json"


class Record(BaseModel):
    """A file that vouches for itself."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    def written(self) -> bytes:
        """The file."""
        return vouched(self.model_dump(mode="json")).encode()


class Current(Record):
    """Which version of a head is served."""

    version: int = Field(ge=0)
    """0 if none is, of a head that was published to be served later."""
    previous: int = Field(default=0, ge=0)
    """The version that was served before; 0 if there was none."""
    pinned: bool = False
    """Whether servers that have loaded the head keep it in memory."""
    moved_to: str = Field(default="", max_length=200)
    """The encoder group that serves the head now, if it is another one."""


class StoreRecord(Record):
    """What all heads of a store have in common."""

    format: Annotated[int, Field(ge=FORMAT, le=FORMAT)] = FORMAT
    encoder: EncoderEntry


Kind = TypeVar("Kind", bound=Record)


def parsed(data: bytes, place: str, kind: type[Kind]) -> Kind:
    """The record in a file that `place` names.

    Raises:
        ArtefactError: it is not as it was written, or of another format.

    """
    content = vouched_object(data, place)
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        raise ArtefactError(f"{place} cannot be used: {first_fault(error)}") from error
