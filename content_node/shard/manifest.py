"""The manifest of a shard, and of the index it was cut from.

Knows the formats; opens no index. Since format 2 a manifest vouches for itself, and the index's for
those of its shards: with the checksums of a shard's files no byte of an index is left unchecked.
"""

import os
from pathlib import Path
from typing import Annotated, Any, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from winnow.domain.layout import INDEX_FILE, MOST_SHARDS, shard_name
from winnow.errors import ArtefactError
from winnow.files.vouching import FIELD, is_vouched, read_object, vouched

FORMAT = 2
_FORMATS = (1, 2)
_VOUCHED_SINCE = 2
SHARD_FILE = "manifest.json"
_GENERATION_DIGITS = 16
_LARGEST_DIMENSION = 1 << 16
_LARGEST_COUNT = (1 << 63) - 1
"""Of passages, as messages and databases count them."""


def _plain(name: str) -> str:
    if name in ("", ".", "..") or any(each in name for each in "/\\\0"):
        raise ValueError(f"{name!r} is not the name of a file in the shard itself")
    return name


_Name = Annotated[str, AfterValidator(_plain)]
_Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]


class FileEntry(BaseModel):
    """What a file must be."""

    model_config = ConfigDict(frozen=True)
    sha256: _Sha256
    bytes: int = Field(ge=0)


class WordsEntry(BaseModel):
    """The files of a word index; see `content_node.shard.words`."""

    model_config = ConfigDict(frozen=True)
    tokens: _Name
    ends: _Name
    frequencies: _Name
    index_tokens: int = Field(ge=0)
    """Tokens of all passages of all shards."""


class ShardManifest(BaseModel):
    """Everything about a shard before its files are opened."""

    model_config = ConfigDict(frozen=True)
    format: int
    index_id: str
    shard: int = Field(ge=0)
    shards: int = Field(gt=0, le=MOST_SHARDS)
    passages: int = Field(ge=0, le=_LARGEST_COUNT)
    index_passages: int = Field(0, ge=0, le=_LARGEST_COUNT)
    """Passages of all shards; 0 where the shard was built before this was written down."""
    dimension: int = Field(gt=0, le=_LARGEST_DIMENSION)
    space: str
    m: int
    ef_construction: int
    bundle_name: str
    encoding_fingerprint: str
    """Vectors can be compared only with questions of the same encoding."""
    store: _Name
    graph: _Name
    words: WordsEntry | None = None
    """None where the shard was built before it had one: words count for nothing there."""
    files: dict[_Name, FileEntry]
    checksum: str = ""
    """Of the manifest itself; empty in format 1."""

    @property
    def generation(self) -> str:
        """Names the rows: shards with the same passages in the same rows have the same one."""
        return self.files[self.store].sha256[:_GENERATION_DIGITS]

    @property
    def vouched_for(self) -> bool:
        """Whether an altered figure in it would have been noticed."""
        return self.format >= _VOUCHED_SINCE

    @model_validator(mode="after")
    def _is_of_its_index(self) -> Self:
        if self.shard >= self.shards:
            raise ValueError(f"there is no shard {self.shard} of {self.shards}: they count from 0")
        return self

    @model_validator(mode="after")
    def _names_every_file(self) -> Self:
        words = self.words
        parts = (words.tokens, words.ends, words.frequencies) if words else ()
        for name in (self.store, self.graph, *parts):
            if name not in self.files:
                raise ValueError(f"it names {name}, and gives no checksum for it under files")
        return self


class IndexManifest(BaseModel):
    """An index as a whole: what its shards have in common."""

    model_config = ConfigDict(frozen=True)
    format: int
    index_id: str
    shards: int = Field(gt=0, le=MOST_SHARDS)
    passages: int
    dimension: int
    bundle_name: str
    encoding_fingerprint: str
    source: str
    bad_rows: int
    truncated_passages: int
    """Passages of which the encoder read only the beginning."""
    manifests: tuple[str, ...] = ()
    """The checksum of each shard's manifest, by shard; empty in format 1."""
    checksum: str = ""
    """Of the manifest itself; empty in format 1."""


Model = TypeVar("Model", ShardManifest, IndexManifest)


def read_shard_manifest(directory: Path) -> ShardManifest:
    """Reads a shard's manifest; raises ArtefactError if there is no good one."""
    if _holds_only(directory, INDEX_FILE):
        shards = read_index_manifest(directory).shards
        example = directory / shard_name(0, shards)
        raise ArtefactError(f"{directory} is an index: name one of its shards, such as {example}")
    return _read(directory / SHARD_FILE, ShardManifest, "a shard of an index")


def read_index_manifest(directory: Path) -> IndexManifest:
    """Reads an index's manifest; raises ArtefactError if there is no good one."""
    if _holds_only(directory, SHARD_FILE):
        raise ArtefactError(f"{directory} is a shard: name the index that it lies in")
    manifest = _read(directory / INDEX_FILE, IndexManifest, "an index")
    named = len(manifest.manifests)
    if manifest.format >= _VOUCHED_SINCE and named != manifest.shards:
        raise ArtefactError(
            f"{directory / INDEX_FILE} vouches for {named} of {manifest.shards} shards: build the "
            "index again"
        )
    return manifest


def _holds_only(directory: Path, name: str) -> bool:
    """Whether it has this manifest, and not the other."""
    return [each for each in (INDEX_FILE, SHARD_FILE) if (directory / each).exists()] == [name]


def write(path: Path, manifest: Model) -> Model:
    """Writes a manifest and makes it durable; returns it with its checksum."""
    text = vouched(manifest.model_dump())
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    return type(manifest).model_validate_json(text)


def _read(path: Path, kind: type[Model], what: str) -> Model:
    text, content = read_object(path, what)
    _check_format(path, text, content)
    try:
        return kind.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the file"
        raise ArtefactError(f"{path} is damaged: {place}: {first['msg']}") from error


def _check_format(path: Path, text: str, content: dict[str, Any]) -> None:
    found = content.get("format")
    if not isinstance(found, int) or found not in _FORMATS:
        raise ArtefactError(
            f"{path} has format {found!r}, this version reads {' and '.join(map(str, _FORMATS))}: "
            "build it again with `winnow index build`"
        )
    # with a checksum it was written in a later format than the first, whatever it says
    if (found >= _VOUCHED_SINCE or FIELD in content) and not is_vouched(text, content):
        raise ArtefactError(
            f"{path} is damaged: it is not as it was written; copy it again, or build the index "
            "again"
        )
