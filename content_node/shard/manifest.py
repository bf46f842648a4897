"""The manifest of a shard, and of the index it was cut from.

Knows the formats; opens no index.
"""

import json
import os
from pathlib import Path
from typing import TypeVar

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from winnow.domain.layout import INDEX_FILE
from winnow.errors import ArtefactError

FORMAT = 1
SHARD_FILE = "manifest.json"
_GENERATION_DIGITS = 16


class FileEntry(BaseModel):
    """What a file must be."""

    model_config = ConfigDict(frozen=True)
    sha256: str
    bytes: int


class WordsEntry(BaseModel):
    """The files of a word index; see `content_node.shard.words`."""

    model_config = ConfigDict(frozen=True)
    tokens: str
    ends: str
    frequencies: str
    index_tokens: int = Field(ge=0)
    """Tokens of all passages of all shards."""


class ShardManifest(BaseModel):
    """Everything about a shard before its files are opened."""

    model_config = ConfigDict(frozen=True)
    format: int
    index_id: str
    shard: int = Field(ge=0)
    shards: int = Field(gt=0)
    passages: int = Field(ge=0)
    index_passages: int = Field(0, ge=0)
    """Passages of all shards; 0 where the shard was built before this was written down."""
    dimension: int = Field(gt=0)
    space: str
    m: int
    ef_construction: int
    bundle_name: str
    encoding_fingerprint: str
    """Vectors can be compared only with questions of the same encoding."""
    store: str
    graph: str
    words: WordsEntry | None = None
    """None where the shard was built before it had one: words count for nothing there."""
    files: dict[str, FileEntry]

    @property
    def generation(self) -> str:
        """Names the rows: shards with the same passages in the same rows have the same one."""
        entry = self.files.get(self.store)
        return entry.sha256[:_GENERATION_DIGITS] if entry else ""


class IndexManifest(BaseModel):
    """An index as a whole: what its shards have in common."""

    model_config = ConfigDict(frozen=True)
    format: int
    index_id: str
    shards: int = Field(gt=0)
    passages: int
    dimension: int
    bundle_name: str
    encoding_fingerprint: str
    source: str
    bad_rows: int
    truncated_passages: int
    """Passages of which the encoder read only the beginning."""


Model = TypeVar("Model", ShardManifest, IndexManifest)


def read_shard_manifest(directory: Path) -> ShardManifest:
    """Reads a shard's manifest; raises ArtefactError if there is no good one."""
    return _read(directory / SHARD_FILE, ShardManifest, "a shard of an index")


def read_index_manifest(directory: Path) -> IndexManifest:
    """Reads an index's manifest; raises ArtefactError if there is no good one."""
    return _read(directory / INDEX_FILE, IndexManifest, "an index")


def write(path: Path, manifest: BaseModel) -> None:
    """Writes a manifest and makes it durable."""
    with path.open("w", encoding="utf-8") as file:
        json.dump(manifest.model_dump(), file, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())


def _read(path: Path, kind: type[Model], what: str) -> Model:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ArtefactError(f"cannot read {path}: {error}; is {path.parent} {what}?") from error
    try:
        manifest = kind.model_validate_json(text)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise ArtefactError(f"{path} is damaged: {place}: {first['msg']}") from error
    if manifest.format != FORMAT:
        raise ArtefactError(
            f"{path} has format {manifest.format}, this version reads {FORMAT}: build it again "
            "with `winnow index build`"
        )
    return manifest
