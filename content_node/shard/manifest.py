"""The manifest of a shard, and of the index it was cut from.

Knows the formats; opens no index. Since format 2 a manifest vouches for itself, and the index's for
those of its shards: with the checksums of a shard's files no byte of an index is left unchecked.
Since format 3 a shard may hold writes, too: it says up to which one.
Every field that an answer depends on is in the shard's generation: replicas with another figure are
never asked as one.
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
"""Since then there are holes, too, and a log of writes may go on where a shard ends."""
SHARD_FILE = "manifest.json"
_GENERATION_DIGITS = 16


def _plain(name: str) -> str:
    if name in ("", ".", "..") or any(each in name for each in "/\\\0"):
        raise ValueError(f"{name!r} is not the name of a file in the shard itself")
    return name


_Name = Annotated[str, AfterValidator(_plain)]
_Sha256 = Annotated[str, Field(pattern="^[0-9a-f]{64}$")]
_MOST = 2**53
"""More than any index has of anything: up to here every integer is a float, too."""
_Count = Annotated[int, Field(ge=0, le=_MOST)]
_Passages = Annotated[int, Field(ge=0, lt=2**32)]
"""As coverage counts them."""
_Sequence = Annotated[int, Field(ge=0, lt=2**63)]
"""As SQLite counts them."""
_Shards = Annotated[int, Field(gt=0, le=MOST_SHARDS)]
_Dimension = Annotated[int, Field(gt=0, le=2**16)]


class _Part(BaseModel):
    # what nobody reads nobody would miss: a misspelt field is none
    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")


class FileEntry(_Part):
    """What a file must be."""

    sha256: _Sha256
    bytes: _Count


class WordsEntry(_Part):
    """The files of a word index; see `content_node.shard.words`."""

    tokens: _Name
    ends: _Name
    frequencies: _Name
    index_tokens: _Count
    """Tokens of all passages of all shards, when the index was built."""
    postings: _Name | None = None
    """Rows that contain each token, one token after the other; None before format 3."""
    starts: _Name | None = None
    """Where the rows of each token begin."""
    counts: _Name | None = None
    """How often the token is in each of these rows."""

    @property
    def inverted(self) -> tuple[str, ...]:
        """The files that lead from tokens to rows; none before format 3."""
        return tuple(each for each in (self.postings, self.starts, self.counts) if each is not None)

    @property
    def names(self) -> tuple[str, ...]:
        """All files, always in the same order."""
        return (self.tokens, self.ends, self.frequencies, *self.inverted)

    @model_validator(mode="after")
    def _leads_to_rows_or_does_not(self) -> Self:
        if len(self.inverted) not in (0, 3):
            raise ValueError("postings, starts and counts are there together or not at all")
        return self


class ShardManifest(_Part):
    """Everything about a shard before its files are opened."""

    format: int
    index_id: str
    shard: Annotated[int, Field(ge=0)]
    shards: _Shards
    passages: _Passages
    rows: _Passages = 0
    """Rows, also those that hold no passage any more; before format 3 as many as passages."""
    sequence: _Sequence = 0
    """The write up to which it holds everything; 0 as it was built."""
    log_id: str = ""
    """Names the log of these writes; empty as it was built."""
    index_passages: _Passages = 0
    """Passages of all shards when the index was built; 0 where this was not written down yet."""
    dimension: _Dimension
    space: Literal["l2"]
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
        """Names the rows, and how they are found: replicas that have the same one give the same
        answers.

        The graph and the words are in it, too: the same passages are found in another order, or
        others of them, where these differ.
        """
        words = self.words
        parts: list[object] = [
            *(self.files[name].sha256 for name in self._named),
            *(self.passages, self.index_passages, words.index_tokens if words else None),
            *(self.dimension, self.space, self.encoding_fingerprint),
        ]
        written = [self.rows, self.sequence, self.log_id]
        if written != [self.passages, 0, ""]:  # else it has the name that older versions give it
            parts.append(written)
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:_GENERATION_DIGITS]

    @property
    def vouched_for(self) -> bool:
        """Whether an altered figure in it would have been noticed."""
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
    def _is_of_its_index(self) -> Self:
        if self.shard >= self.shards:
            raise ValueError(f"there is no shard {self.shard} of {self.shards}: they count from 0")
        return self

    @model_validator(mode="after")
    def _names_every_file(self) -> Self:
        for name in self._named:
            if name not in self.files:
                raise ValueError(f"it names {name}, and gives no checksum for it under files")
        return self

    @model_validator(mode="after")
    def _can_be(self) -> Self:
        if self.shard >= self.shards:
            raise ValueError(f"shard {self.shard} of {self.shards} cannot be: counted from 0")
        if self.passages > self.index_passages > 0 and not self.sequence:
            raise ValueError(
                f"{self.passages} passages of {self.index_passages} in all shards cannot be"
            )
        if self.rows < self.passages:
            raise ValueError(f"{self.passages} passages in {self.rows} rows cannot be")
        return self

    @model_validator(mode="after")
    def _is_of_its_format(self) -> Self:
        """What was not written yet is not there; what has to be there is."""
        if self.format >= _POSTINGS_SINCE:
            if not (self.words and self.words.inverted):
                raise ValueError(f"format {self.format} has words and postings, this has none")
        elif (self.rows, self.sequence, self.log_id) != (self.passages, 0, ""):
            raise ValueError(f"format {self.format} has neither holes nor writes, this says so")
        elif self.words and self.words.inverted:
            raise ValueError(f"format {self.format} has no postings, this names some")
        return self


class IndexManifest(_Part):
    """An index as a whole: what its shards have in common."""

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
    """Passages of which the encoder read only the beginning."""
    manifests: tuple[str, ...] = ()
    """The checksum of each shard's manifest, by shard; empty in format 1."""
    checksum: str = ""
    """Of the manifest itself; empty in format 1."""


Model = TypeVar("Model", ShardManifest, IndexManifest)


def open_shard_manifest(directory: Path) -> tuple[ShardManifest, OpenFile]:
    """A shard's manifest and its file; raises ArtefactError if there is no good one."""
    if _holds_only(directory, INDEX_FILE):
        shards = read_index_manifest(directory).shards
        example = directory / shard_name(0, shards)
        raise ArtefactError(f"{directory} is an index: name one of its shards, such as {example}")
    file = open_object(directory / SHARD_FILE, "a shard of an index")
    return _read(file, ShardManifest), file


def read_shard_manifest(directory: Path) -> ShardManifest:
    """Reads a shard's manifest; raises ArtefactError if there is no good one."""
    return open_shard_manifest(directory)[0]


def read_index_manifest(directory: Path) -> IndexManifest:
    """Reads an index's manifest; raises ArtefactError if there is no good one."""
    if _holds_only(directory, SHARD_FILE):
        raise ArtefactError(f"{directory} is a shard: name the index that it lies in")
    manifest = _read(open_object(directory / INDEX_FILE, "an index"), IndexManifest)
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


def _read(file: OpenFile, kind: type[Model]) -> Model:
    path = file.path
    text, content = read_object(file)
    _check_format(path, text, content)
    try:
        # as JSON, where a list may be a tuple and a number is never a text
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
    # with a checksum it was written in a later format than the first, whatever it says
    if (found >= _VOUCHED_SINCE or FIELD in content) and not is_vouched(text, content):
        raise ArtefactError(
            f"{path} is damaged: it is not as it was written; copy it again, or build the index "
            "again"
        )
