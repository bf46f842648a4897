"""The manifest of a shard, and the manifest of the index it was cut from.

Knows the formats; opens no index. Since format 2 a manifest has its own checksum, and the index's
manifest has those of its shards' manifests. Together with the checksums of files they cover every
byte of an index. Since format 3 a shard may hold writes, and says up to which one. Every field that
an answer depends on is part of the shard's generation, so replicas that differ in one are never
asked as one.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from winnow.domain.shard import INDEX_FILE, MOST_SHARDS, shard_name
from winnow.errors import ArtefactError
from winnow.files.opened import OpenFile
from winnow.files.vouching import FIELD, first_fault, is_vouched, open_object, read_object, vouched

FORMAT = 3
_FORMATS = (1, 2, 3)
_VOUCHED_SINCE = 2
_POSTINGS_SINCE = 3
"""Since then a shard may have empty rows, and a log of writes may continue it."""
SHARD_FILE = "manifest.json"
_GENERATION_DIGITS = 16


def _plain(name: str) -> str:
    if name in ("", ".", "..") or any(each in name for each in "/\\\0"):
        raise ValueError(f"{name!r} is not the name of a file in the shard itself")
    return name


_Name = Annotated[str, AfterValidator(_plain)]
_Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
_MOST = 2**53
"""Upper limit of counts: up to here a float represents every integer."""
_Count = Annotated[int, Field(ge=0, le=_MOST)]
_Passages = Annotated[int, Field(ge=0, lt=2**32)]
"""The range of counts in coverage."""
_Sequence = Annotated[int, Field(ge=0, lt=2**63)]
"""The range of integers in SQLite."""
_Shards = Annotated[int, Field(gt=0, le=MOST_SHARDS)]
_Dimension = Annotated[int, Field(gt=0, le=2**16)]


class _Part(BaseModel):
    # a misspelt field would go unnoticed
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class FileEntry(_Part):
    """Expected size and checksum of a file."""

    sha256: _Sha256
    bytes: _Count


class WordsEntry(_Part):
    """The files of a word index; see `content_node.shard.words`."""

    tokens: _Name
    ends: _Name
    frequencies: _Name
    index_tokens: _Count
    """Number of tokens of all shards when the index was built."""
    postings: _Name | None = None
    """Rows that contain each token, token after token; None before format 3."""
    starts: _Name | None = None
    """Where the rows of each token begin."""
    counts: _Name | None = None
    """How often each of these rows contains the token."""

    @property
    def inverted(self) -> tuple[str, ...]:
        """The files of postings; none before format 3."""
        return tuple(each for each in (self.postings, self.starts, self.counts) if each is not None)

    @property
    def names(self) -> tuple[str, ...]:
        """All files in a fixed order."""
        return (self.tokens, self.ends, self.frequencies, *self.inverted)

    @model_validator(mode="after")
    def _leads_to_rows_or_does_not(self) -> Self:
        if len(self.inverted) not in (0, 3):
            raise ValueError("postings, starts and counts must be there together or not at all")
        return self


class ShardManifest(_Part):
    """What is known of a shard before its files are opened."""

    format: int
    index_id: str
    shard: Annotated[int, Field(ge=0)]
    shards: _Shards
    passages: _Passages
    rows: _Passages = 0
    """Number of rows, including empty ones; before format 3 the number of passages."""
    sequence: _Sequence = 0
    """The last write that the shard holds; 0 after the build."""
    log_id: str = ""
    """Id of the log whose writes the shard includes; empty after the build."""
    index_passages: _Passages = 0
    """Passages of all shards when the index was built; 0 in formats without this field."""
    dimension: _Dimension
    space: Literal["l2"]
    m: int
    ef_construction: int
    bundle_name: str
    encoding_fingerprint: str
    """Vectors can be compared only with questions of this encoding."""
    store: _Name
    graph: _Name
    words: WordsEntry | None = None
    """None in format 1: words are counted when the shard is opened."""
    files: dict[_Name, FileEntry]
    checksum: str = ""
    """Checksum of the manifest itself; empty in format 1."""

    @property
    def generation(self) -> str:
        """Name of the rows and of how they are found: replicas with the same one give the same
        answers.

        It covers the graph and the words, too. If these differ, the same passages may be found in
        another order.
        """
        words = self.words
        parts: list[object] = [
            *(self.files[name].sha256 for name in self._named),
            *(self.passages, self.index_passages, words.index_tokens if words else None),
            *(self.dimension, self.space, self.encoding_fingerprint),
        ]
        written = [self.rows, self.sequence, self.log_id]
        if written != [
            self.passages,
            0,
            "",
        ]:  # otherwise the name must stay as older versions gave it
            parts.append(written)
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_GENERATION_DIGITS]

    @property
    def vouched_for(self) -> bool:
        """Whether a changed value in the manifest would have been noticed."""
        return self.format >= _VOUCHED_SINCE

    @property
    def _named(self) -> tuple[str, ...]:
        return (self.store, self.graph, *(self.words.names if self.words else ()))

    @model_validator(mode="before")
    @classmethod
    def _has_rows(cls, content: Any) -> Any:
        if isinstance(content, dict) and "rows" not in content and "passages" in content:
            return {**content, "rows": content["passages"]}
        return content

    @model_validator(mode="after")
    def _is_consistent(self) -> Self:
        if self.shard >= self.shards:
            raise ValueError(f"there is no shard {self.shard} of {self.shards}: they count from 0")
        for name in self._named:
            if name not in self.files:
                raise ValueError(f"it names {name}, and gives no checksum for it under files")
        if self.passages > self.index_passages > 0 and not self.sequence:
            raise ValueError(
                f"passages is {self.passages}, more than index_passages, {self.index_passages}"
            )
        if self.rows < self.passages:
            raise ValueError(f"passages is {self.passages}, more than rows, {self.rows}")
        inverted = bool(self.words and self.words.inverted)
        if self.format >= _POSTINGS_SINCE:
            if not inverted:
                raise ValueError(f"format {self.format} needs words and postings, this has none")
        elif (self.rows, self.sequence, self.log_id) != (self.passages, 0, ""):
            raise ValueError(f"format {self.format} has neither empty rows nor writes")
        elif inverted:
            raise ValueError(f"format {self.format} has no postings, this names some")
        return self


class IndexManifest(_Part):
    """What the shards of an index have in common."""

    format: int
    index_id: str
    shards: _Shards
    passages: _Passages
    dimension: _Dimension
    bundle_name: str
    encoding_fingerprint: str
    source: str
    bad_rows: _Count
    truncated_passages: _Passages
    """Number of passages that were longer than the encoder reads."""
    manifests: tuple[str, ...] = ()
    """Checksum of each shard's manifest, by shard; empty in format 1."""
    checksum: str = ""
    """Checksum of the manifest itself; empty in format 1."""


Model = TypeVar("Model", ShardManifest, IndexManifest)


def open_shard_manifest(directory: Path) -> tuple[ShardManifest, OpenFile]:
    """Reads a shard's manifest; returns it and its file. Raises ArtefactError if it is missing or
    bad.
    """
    if _holds_only(directory, INDEX_FILE):
        shards = read_index_manifest(directory).shards
        example = directory / shard_name(0, shards)
        raise ArtefactError(f"{directory} is an index: name one of its shards, such as {example}")
    file = open_object(directory / SHARD_FILE, "a shard of an index")
    return _read(file, ShardManifest), file


def read_shard_manifest(directory: Path) -> ShardManifest:
    """Reads a shard's manifest; raises ArtefactError if it is missing or bad."""
    return open_shard_manifest(directory)[0]


def read_index_manifest(directory: Path) -> IndexManifest:
    """Reads an index's manifest; raises ArtefactError if it is missing or bad."""
    if _holds_only(directory, SHARD_FILE):
        raise ArtefactError(f"{directory} is a shard: name the index that it is part of")
    manifest = _read(open_object(directory / INDEX_FILE, "an index"), IndexManifest)
    named = len(manifest.manifests)
    if manifest.format >= _VOUCHED_SINCE and named != manifest.shards:
        raise ArtefactError(
            f"{directory / INDEX_FILE} vouches for {named} of {manifest.shards} shards: build the "
            "index again"
        )
    return manifest


def _holds_only(directory: Path, name: str) -> bool:
    """Whether a directory has this manifest and not the other kind."""
    return [each for each in (INDEX_FILE, SHARD_FILE) if (directory / each).exists()] == [name]


def write(path: Path, manifest: Model) -> Model:
    """Writes a manifest and makes it durable; returns it with its checksum."""
    text = vouched(manifest.model_dump())
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    return type(manifest).model_validate_json(text)


def _read(file: OpenFile, kind: type[Model]) -> Model:
    path = file.path
    text, content = read_object(file)
    _check_format(path, text, content)
    try:
        # as JSON: a list may become a tuple, and a number is never a string
        return kind.model_validate_json(json.dumps(content))
    except ValidationError as error:
        raise ArtefactError(f"{path} is damaged: {first_fault(error)}") from error
    except (ValueError, RecursionError) as error:
        raise ArtefactError(f"{path} is damaged: {error}") from error


def _check_format(path: Path, text: str, content: dict[str, Any]) -> None:
    found = content.get("format")
    if not isinstance(found, int) or found not in _FORMATS:
        raise ArtefactError(
            f"{path} has format {found!r}, this version reads {_FORMATS[0]} to {_FORMATS[-1]}: "
            "build it again with `winnow index build`"
        )
    # a checksum shows that it was written in a later format than the first
    if (found >= _VOUCHED_SINCE or FIELD in content) and not is_vouched(text, content):
        raise ArtefactError(
            f"{path} is damaged: its checksum does not match; copy it again, or build the index "
            "again"
        )
