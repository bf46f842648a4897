"""Writes to an index: puts and deletions of passages, and their outcomes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from winnow.domain.passage import Passage
from winnow.domain.quota import StorageQuota, TenantUsage


@dataclass(frozen=True, slots=True, order=True)
class Position:
    """A position in the log of a shard."""

    shard: int
    sequence: int
    """Sequence number of a write, from 1; 0 before the first write."""
    index: str = ""
    """Name of the index; empty if it is not known, or the front serves a single index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodedPassage:
    """A passage with its tokens and vector, in the binary format of messages and storage.

    Integers are little-endian uint32. Python lists of tokens would take fifty times the memory.
    """

    passage: Passage
    title_tokens: bytes
    """Token ids of the title."""
    text_tokens: bytes
    """Token ids of the text."""
    text_offsets: bytes
    """For each token of the text, its start and end in code points; the end is exclusive."""
    vector: bytes
    """Little-endian float32 values, with norm 1."""
    token_levels: bytes = b""
    """Levels of the token vectors, int8 [encoded tokens, values]; empty if not computed. They are
    in messages and journals, but not in logs and shards.
    """
    token_vectors_fingerprint: str = ""
    """Fingerprint of the encoder and the projection that made `token_levels`."""

    @property
    def words(self) -> bytes:
        """Token ids of title and text."""
        return self.title_tokens + self.text_tokens


@dataclass(frozen=True, slots=True)
class Write:
    """A put or a deletion of a passage."""

    id: str
    """The stored id of the passage (`winnow.domain.tenant`).

    A deletion of `id_of_whole_tenant` deletes all passages of a tenant.
    """
    version: int | None = None
    """Version for ordering. A write with a lower version than the stored one changes nothing.
    Without versions, the last write wins.
    """
    put: EncodedPassage | None = None
    """The passage to store; None deletes."""
    quota: StorageQuota | None = field(default=None, compare=False)
    """Limits of the tenant in the shard; None without limits. All writes of a call have the same
    ones, and are then of one tenant.
    """


@dataclass(frozen=True, slots=True)
class WriteAttempt:
    """One attempt to store the writes of a call in a shard. Attempts follow failed ones."""

    call: str
    """Identifies the writes: equal in all attempts."""
    number: int = 0
    """Number of the attempt; later attempts have higher numbers."""


class Outcome(Enum):
    """The outcome of a write. Every outcome means that the write is durable."""

    STORED = "stored"
    UNCHANGED = "unchanged"
    """The same passage was already stored, or there was none to delete."""
    OUTDATED = "outdated"
    """A later version was already stored."""


@dataclass(frozen=True, slots=True)
class Written:
    """The outcome of a write, and its position in the log of the shard."""

    outcome: Outcome
    sequence: int
    """Number of the write if it was stored; otherwise of the last write before it.

    In an index with tenants each write has its own number.
    """
    log_id: str = field(default="", compare=False)
    """Identifies the log to which `sequence` belongs; empty if not known."""
    usage: TenantUsage | None = field(default=None, compare=False)
    """What the tenant has stored in the shard after the call; None for writes without a quota."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FedPassage:
    """A passage to be stored, not validated."""

    id: str
    title: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    """A JSON object."""
    version: int | None = None
    tenant: str = ""
    """Tenant of the passage; empty in an index without tenants."""


@dataclass(frozen=True, slots=True)
class Deletion:
    """A passage to be deleted, by its id."""

    id: str
    version: int | None = None
    tenant: str = ""
    """Tenant of the passage; empty in an index without tenants."""


@dataclass(frozen=True, slots=True)
class Put:
    """A valid passage to be stored."""

    passage: Passage
    version: int | None = None


@dataclass(frozen=True, slots=True)
class WriteResult:
    """The result of a write, for users."""

    id: str
    outcome: Outcome
    position: Position
    truncated: bool = False
    """Whether the encoder read only the beginning of the passage."""


@dataclass(frozen=True, slots=True)
class FeedSummary:
    """The summary of the writes of a stream."""

    stored: int
    unchanged: int
    outdated: int
    positions: tuple[Position, ...]
    """The last position in each shard that was written to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FilteredDeletion:
    """A request to delete the passages that match a filter, or those of a document."""

    where: str = ""
    """Filter on the metadata of the passages; empty if `document` is set."""
    document: str = ""
    """Value of the metadata field `document`; empty if `where` is set."""
    dry_run: bool = False
    """Whether to count the passages instead of deleting them."""
    after: tuple[Position, ...] = ()
    """Writes that the filter must see."""
    tenant: str = ""
    """Tenant of the passages; empty for an index without tenants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedPassages:
    """The result of a deletion by filter."""

    matched: int
    """Number of passages that matched."""
    deleted: int
    """Number of passages that were deleted."""
    complete: bool
    """Whether no matching passage is left, except passages written meanwhile."""
    positions: tuple[Position, ...] = ()
    """The last position in each shard that took a deletion."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletedTenant:
    """The result of the deletion of a tenant."""

    passages: int
    """Number of passages that the tenant had before."""
    positions: tuple[Position, ...] = ()
    """The last position in each shard that may have had passages of the tenant."""
