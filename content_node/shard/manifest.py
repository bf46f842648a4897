"""The manifests of a shard and of an index, in all formats.

Since format 2 each manifest has its own checksum, and an index's manifest also has the checksums of
the shards' manifests. Together with the checksums of files they cover every byte of an index. Since
format 3 a shard may include writes, up to a sequence number. In format 4 it has no graph. Every
field that an answer depends on is part of the shard's generation, so shards that differ in such a
field are never treated as replicas.
"""

import hashlib
import json
import os
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError, model_validator

from winnow.domain.partition import is_shard_number
from winnow.domain.shard import INDEX_FILE, MAX_SHARDS, shard_name
from winnow.errors import ArtefactError
from winnow.files.checksummed_json import (
    CHECKSUM_FIELD,
    check_checksum,
    first_violation,
    open_json,
    read_json_object,
    to_checksummed_json,
)
from winnow.files.opened import OpenFile

FORMAT = 3
GRAPHLESS_FORMAT = 4
"""Format of a shard without a graph."""
ARCHIVED_FORMAT: Literal[5] = 5
"""Format of the stub of an archived shard; see `content_node.archiving.stub`."""
_FORMATS = (1, 2, 3, 4)
_FIRST_CHECKSUM_FORMAT = 2
_FIRST_POSTINGS_FORMAT = 3
"""Also the first format with empty rows, and with writes in a log."""
SHARD_FILE = "manifest.json"
_GENERATION_DIGITS = 16


def _validate_file_name(name: str) -> str:
    if name in ("", ".", "..") or any(each in name for each in "/\\\0"):
        raise ValueError(f"{name!r} is not the name of a file in the shard's directory")
    return name


_FileName = Annotated[str, AfterValidator(_validate_file_name)]
_Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
_MAX_COUNT = 2**53
"""Up to this limit a float represents every integer."""
_Count = Annotated[int, Field(ge=0, le=_MAX_COUNT)]
_Passages = Annotated[int, Field(ge=0, lt=2**32)]
"""The range of `uint32` fields in messages."""
_Sequence = Annotated[int, Field(ge=0, lt=2**63)]
"""The range of integers in SQLite."""
_Shards = Annotated[int, Field(gt=0, le=MAX_SHARDS)]
_Dimension = Annotated[int, Field(gt=0, le=2**16)]


class _StrictModel(BaseModel):
    # otherwise a misspelt field would be ignored
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class FileEntry(_StrictModel):
    """Expected size and checksum of a file."""

    sha256: _Sha256
    bytes: _Count


class WordsEntry(_StrictModel):
    """The files of a word index; see `content_node.shard.words` and `postings`."""

    tokens: _FileName
    ends: _FileName
    frequencies: _FileName
    index_tokens: _Count
    """Number of tokens of all shards when the index was built."""
    postings: _FileName | None = None
    """Rows of each token, token after token; None before format 3."""
    starts: _FileName | None = None
    """Index of each token's first row in `postings`."""
    counts: _FileName | None = None
    """Occurrences of the token in each row of `postings`."""

    @property
    def posting_files(self) -> tuple[str, ...]:
        """The files of postings; none before format 3."""
        return tuple(each for each in (self.postings, self.starts, self.counts) if each is not None)

    @property
    def files(self) -> tuple[str, ...]:
        """The names of all files, in a fixed order."""
        return (self.tokens, self.ends, self.frequencies, *self.posting_files)

    @model_validator(mode="after")
    def _validate_posting_files(self) -> Self:
        if len(self.posting_files) not in (0, 3):
            raise ValueError("postings, starts and counts must be given together, or all left out")
        return self


class ShardManifest(_StrictModel):
    """The content of a shard's `manifest.json`."""

    format: int
    index_id: str
    shard: Annotated[int, Field(ge=0)]
    shards: _Shards
    passages: _Passages
    rows: _Passages = 0
    """Number of rows, including empty ones; before format 3 the number of passages."""
    sequence: _Sequence = 0
    """Sequence number of the last write in the shard; 0 after the build."""
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
    """Fingerprint of the encoding of the vectors. Questions must have the same encoding."""
    store: _FileName
    graph: _FileName | None = None
    """File of the vectors and their graph; None for a shard without a graph."""
    vectors: _FileName | None = None
    """File of the vectors of a shard without a graph; None for other shards."""
    words: WordsEntry | None = None
    """None in format 1: words are counted when the shard is opened."""
    tenants: Literal[True] | None = None
    """Whether the index has tenants. The field is left out without tenants. Versions that do not
    enforce tenants refuse a manifest with this field.
    """
    files: dict[_FileName, FileEntry]
    checksum: str = ""
    """Checksum of the manifest itself; empty in format 1."""

    @property
    def generation(self) -> str:
        """Checksum of everything that answers depend on. Replicas of one generation answer alike.

        It covers the graph and the words, too: with other ones, the same passages may be retrieved
        in another order.
        """
        words = self.words
        parts: list[object] = [
            *(self.files[name].sha256 for name in self._required_files),
            *(self.passages, self.index_passages, words.index_tokens if words else None),
            *(self.dimension, self.space, self.encoding_fingerprint),
        ]
        if self.tenants:
            parts.append("tenants")
        if self._has_writes:  # without writes the generation must be that of older versions
            parts.append([self.rows, self.sequence, self.log_id])
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_GENERATION_DIGITS]

    @property
    def has_tenants(self) -> bool:
        """Whether every passage is of a tenant; see `winnow.domain.tenant`."""
        return self.tenants is True

    @property
    def vector_file(self) -> str:
        """Name of the file of the vectors."""
        return self.graph or self.vectors or ""

    @property
    def has_checksum(self) -> bool:
        """Whether the manifest has a checksum, which detects changed values."""
        return self.format >= _FIRST_CHECKSUM_FORMAT

    @property
    def _has_writes(self) -> bool:
        return (self.rows, self.sequence, self.log_id) != (self.passages, 0, "")

    @property
    def _required_files(self) -> tuple[str, ...]:
        return (self.store, self.vector_file, *(self.words.files if self.words else ()))

    @model_validator(mode="before")
    @classmethod
    def _default_rows(cls, content: Any) -> Any:
        if isinstance(content, dict) and "rows" not in content and "passages" in content:
            return {**content, "rows": content["passages"]}
        return content

    @model_validator(mode="after")
    def _validate(self) -> Self:
        can_be_half = self.format >= _FIRST_POSTINGS_FORMAT and is_shard_number(
            self.shard, self.shards
        )
        if self.shard >= self.shards and not can_be_half:
            raise ValueError(
                f"there is no shard {self.shard} of {self.shards}: shards count from 0"
            )
        self._validate_vectors()
        for name in self._required_files:
            if name not in self.files:
                raise ValueError(f"files has no checksum of {name}")
        if self.passages > self.index_passages > 0 and not self.sequence:
            raise ValueError(
                f"passages is {self.passages}, more than index_passages, {self.index_passages}"
            )
        if self.rows < self.passages:
            raise ValueError(f"there are {self.passages} passages, but only {self.rows} rows")
        has_postings = bool(self.words and self.words.posting_files)
        if self.format >= _FIRST_POSTINGS_FORMAT:
            if not has_postings:
                raise ValueError(f"format {self.format} needs words and postings")
        elif self._has_writes:
            raise ValueError(f"format {self.format} allows neither empty rows nor writes")
        elif has_postings:
            raise ValueError(f"format {self.format} allows no postings")
        return self

    def _validate_vectors(self) -> None:
        has_graph = self.format != GRAPHLESS_FORMAT
        if (self.graph is not None, self.vectors is not None) != (has_graph, not has_graph):
            raise ValueError(
                f"format {self.format} needs {'graph' if has_graph else 'vectors'}, and allows no "
                f"{'vectors' if has_graph else 'graph'}"
            )


class IndexManifest(_StrictModel):
    """The content of an index's `index.json`."""

    format: int
    index_id: str
    shards: _Shards
    passages: _Passages
    dimension: _Dimension
    bundle_name: str
    encoding_fingerprint: str
    source: str
    """File or index that the passages were read from."""
    bad_rows: _Count
    """Number of invalid rows of the source, which were skipped."""
    truncated_passages: _Passages
    """Number of passages that exceed the encoder's input length and were truncated."""
    manifests: tuple[str, ...] = ()
    """Checksum of each shard's manifest, by shard; empty in format 1."""
    tenants: Literal[True] | None = None
    """Whether the index has tenants, as in the manifests of its shards."""
    checksum: str = ""
    """Checksum of the manifest itself; empty in format 1."""


CONVERT_INDEX = "`winnow index build --passages INDEX --out NEW` converts the index"
"""Advice for a shard of an older version."""
Model = TypeVar("Model", ShardManifest, IndexManifest)


def open_shard_manifest(directory: Path) -> tuple[ShardManifest, OpenFile]:
    """Reads a shard's manifest; returns it with its file.

    Raises ArtefactError if it is missing or invalid.
    """
    if _has_only(directory, INDEX_FILE):
        shards = read_index_manifest(directory).shards
        example = directory / shard_name(0, shards)
        raise ArtefactError(f"{directory} is an index: name one of its shards, such as {example}")
    file = open_json(directory / SHARD_FILE, "a shard of an index")
    return _read(file, ShardManifest), file


def read_shard_manifest(directory: Path) -> ShardManifest:
    """Reads a shard's manifest; raises ArtefactError if it is missing or invalid."""
    return open_shard_manifest(directory)[0]


def read_index_manifest(directory: Path) -> IndexManifest:
    """Reads an index's manifest; raises ArtefactError if it is missing or invalid."""
    if _has_only(directory, SHARD_FILE):
        raise ArtefactError(f"{directory} is a shard: name the index that it is part of")
    manifest = _read(open_json(directory / INDEX_FILE, "an index"), IndexManifest)
    checksums = len(manifest.manifests)
    if manifest.format >= _FIRST_CHECKSUM_FORMAT and checksums != manifest.shards:
        raise ArtefactError(
            f"{directory / INDEX_FILE} has checksums of {checksums} of {manifest.shards} shards: "
            "build the index again"
        )
    return manifest


def _has_only(directory: Path, name: str) -> bool:
    """Whether a directory has this manifest, and not the other kind."""
    return [each for each in (INDEX_FILE, SHARD_FILE) if (directory / each).exists()] == [name]


def write_manifest(path: Path, manifest: Model) -> Model:
    """Writes a manifest and makes it durable; returns it with its checksum."""
    text = to_checksummed_json(manifest.model_dump(exclude_none=True))
    with path.open("w", encoding="utf-8", newline="") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    return type(manifest).model_validate_json(text)


def _read(file: OpenFile, kind: type[Model]) -> Model:
    path = file.path
    text, content = read_json_object(file)
    _check_format(path, text, content)
    try:
        # from JSON, where a list may become a tuple; strict models refuse that for Python objects
        return kind.model_validate_json(json.dumps(content))
    except ValidationError as error:
        raise ArtefactError(f"{path} is damaged: {first_violation(error)}") from error
    except (ValueError, RecursionError) as error:
        raise ArtefactError(f"{path} is damaged: {error}") from error


def _check_format(path: Path, text: str, content: dict[str, Any]) -> None:
    version = content.get("format")
    if version == ARCHIVED_FORMAT:
        raise ArtefactError(
            f"{path.parent} is archived at {content.get('url')}: start a node without "
            "--archive-url on it, which restores the shard, and run the same command again"
        )
    if not isinstance(version, int) or version not in _FORMATS:
        raise ArtefactError(
            f"{path} has format {version!r}, this version reads {_FORMATS[0]} to {_FORMATS[-1]}: "
            "build the index again with `winnow index build`"
        )
    # a manifest with a checksum is not of format 1, even if it claims to be
    if version >= _FIRST_CHECKSUM_FORMAT or CHECKSUM_FIELD in content:
        check_checksum(text, content, path, "; copy it again, or build the index again")
