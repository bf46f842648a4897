"""The manifest of an archived shard, which takes the place of the shard's own `manifest.json`.

The rename of this file is the moment at which the truth moves. If it is the stub, the shard is in
the store, and other files of the directory count for nothing. Otherwise the shard is on this disk.
Versions before format 5 refuse a stub, so they never use half of a shard.
"""

import json
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from winnow.content_node.live.half_log import journal_of_log
from winnow.content_node.shard.manifest import (
    ARCHIVED_FORMAT,
    SHARD_FILE,
    ShardManifest,
    read_shard_manifest,
)
from winnow.domain.quota import TenantUsage
from winnow.domain.shard import shard_name
from winnow.errors import ArtefactError
from winnow.files.checksummed_json import (
    CHECKSUM_FIELD,
    check_checksum,
    first_violation,
    open_json,
    read_json_object,
    to_checksummed_json,
)
from winnow.files.durable import write_durably
from winnow.journal.journal import JournalEnd


class ArchiveStub(BaseModel):
    """An archived shard: where it is, and what is told about it without restoring it."""

    model_config = ConfigDict(frozen=True, strict=True, extra="forbid")

    format: Literal[5] = ARCHIVED_FORMAT
    url: str
    """Directory or URL of the archive, without a password."""
    folder: str
    """Folder of this copy of the shard in the archive, below the id of the index."""
    snapshot: str
    """Name of the shard's snapshot in that folder."""
    manifest: ShardManifest
    """The manifest of the built shard."""
    passages: int
    generation: str
    sequence: int
    """Sequence number of the last write."""
    log_id: str
    journal_position: str | None = None
    """Number and key of the last applied entry of a journal; None if the log follows none."""
    fields: tuple[str, ...]
    has_token_vectors: bool
    tenants: tuple[tuple[str, int, int], ...]
    """Name, number of passages and bytes of each tenant with passages, sorted by name."""

    def snapshot_url(self, archive: str) -> str:
        """Returns the URL of the shard's snapshot in the archive, as `find_snapshot` takes it.

        `archive` is the present URL of the archive; empty for the one of the stub.
        """
        built = self.manifest
        root = folder_url(archive or self.url, built.index_id, self.folder)
        return f"{root}/{shard_name(built.shard, built.shards)}"

    def usage_of(self, tenant: str) -> TenantUsage:
        """Returns what a tenant has stored in the shard."""
        found = (TenantUsage(*counts) for name, *counts in self.tenants if name == tenant)
        return next(found, TenantUsage())

    @property
    def journal_end(self) -> JournalEnd | None:
        """The journal, and its last entry that the shard has; None if the log follows none."""
        if not self.journal_position:
            return None
        number, _, _ = self.journal_position.partition(" ")
        return JournalEnd(journal_of_log(self.log_id), int(number))

    @property
    def field_names(self) -> tuple[str, ...]:
        """Names of the metadata fields, as `ShardView` names them."""
        return self.fields


def folder_url(archive: str, index_id: str, folder: str) -> str:
    """Returns the URL of the folder of a shard in an archive."""
    return f"{archive.rstrip('/')}/{index_id}/{folder}"


def write_stub(directory: Path, stub: ArchiveStub) -> None:
    """Replaces the manifest of a shard by a stub, durably and in one step.

    Raises OSError if the stub cannot be written; the manifest then stays.
    """
    text = to_checksummed_json(stub.model_dump(mode="json", exclude_none=True))
    write_durably(directory / SHARD_FILE, text.encode())


def read_stub(directory: Path) -> ArchiveStub | None:
    """Reads the stub of a shard; returns None if the shard is not archived.

    Raises ArtefactError if the manifest cannot be read, or is a damaged stub.
    """
    path = directory / SHARD_FILE
    if not path.exists():
        return None  # the shard is missing, and may be restored from a snapshot
    text, content = read_json_object(open_json(path, "a shard of an index"))
    if content.get("format") != ARCHIVED_FORMAT:
        return None
    check_checksum(text, content, path)
    fields = {name: value for name, value in content.items() if name != CHECKSUM_FIELD}
    try:
        return ArchiveStub.model_validate_json(json.dumps(fields))
    except ValidationError as error:
        raise ArtefactError(f"{path} is damaged: {first_violation(error)}") from error


def built_manifest(directory: Path) -> ShardManifest:
    """Reads the manifest of a built shard, which may be archived.

    Raises ArtefactError if it is missing or invalid.
    """
    stub = read_stub(directory)
    return stub.manifest if stub is not None else read_shard_manifest(directory)
