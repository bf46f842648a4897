"""Requests for stored passages and documents, and the pages that answer them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Generic, TypeVar

from winnow.domain.passage import Passage

MAX_PAGE_PASSAGES = 1_000
"""Maximum number of passages of a page."""
MAX_PAGE_BYTES = 1 << 20
"""Bytes of the passages of a page after which the page ends, counted in UTF-8.

As a message, metadata takes up to three times as much. So a reply stays below 4 MB, which gRPC
clients accept by default.
"""
MAX_LOOKUP_IDS = 200
"""Maximum number of ids of one lookup on a shard. They fit into a message to a content node."""
DOCUMENT = "document"
"""Metadata field with the name of the document that a passage was cut from."""
DOCUMENT_HASH = "document_hash"
"""Metadata field with the checksum of that document."""
DOCUMENT_PASSAGES = "document_passages"
"""Metadata field with the number of passages that the document was cut into."""


@dataclass(frozen=True, slots=True)
class SelectedFields:
    """The fields of a passage that a caller wants, besides the id."""

    title: bool = True
    text: bool = True
    metadata: bool = True


ALL_FIELDS = SelectedFields()


@dataclass(frozen=True, slots=True, kw_only=True)
class SeenWrites:
    """The position in a shard's log up to which a result includes all writes."""

    sequence: int = 0
    """Sequence number of the last write; 0 if there was none."""
    log_id: str = ""
    """Id of the log; empty if the shard takes no writes."""


Seen = TypeVar("Seen", bound=SeenWrites)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardRequest(Generic[Seen]):
    """A request for stored passages of one shard. `Seen` is the type of its result."""

    kind: ClassVar[str]
    """Name of the request in traces."""
    after: int = 0
    """Sequence number of the last write that the shard must have; 0 for none."""
    client: str = ""
    """Client key, for fair sharing."""
    tenant: str = ""
    """Tenant of the passages; empty for an index without tenants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageListing(ShardRequest["PassagePage"]):
    """A request for a page of passages, in the order of their ids."""

    kind = "list passages"
    limit: int
    """Maximum number of passages of the page."""
    where: str = ""
    """Filter on the metadata of the passages; empty for all passages."""
    after_id: str = ""
    """Last id of the previous page; empty for the first page."""
    fields: SelectedFields = ALL_FIELDS


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageLookup(ShardRequest["FoundPassages"]):
    """A request for passages by their ids."""

    kind = "get passages"
    ids: Sequence[str]
    fields: SelectedFields = ALL_FIELDS


@dataclass(frozen=True, slots=True, kw_only=True)
class CountRequest(ShardRequest["PassageCount"]):
    """A request for the number of passages that match a filter."""

    kind = "count passages"
    where: str = ""
    """Filter on the metadata of the passages; empty for all passages."""
    with_bytes: bool = False
    """Whether to add up the bytes of the passages, too."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantListing(ShardRequest["TenantPage"]):
    """A request for a page of the tenants of an index, in the order of their names.

    It names no tenant itself.
    """

    kind = "list tenants"
    limit: int
    """Maximum number of tenants of the page."""
    after_tenant: str = ""
    """Last name of the previous page; empty for the first page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantWordsRequest(ShardRequest["TenantWordCounts"]):
    """A request for the number of passages of a tenant that contain each of some tokens."""

    kind = "count words"
    token_ids: tuple[int, ...]
    """Token ids, ascending and distinct."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentListing(ShardRequest["DocumentPage"]):
    """A request for a page of documents, in the order of their names."""

    kind = "list documents"
    limit: int
    """Maximum number of documents of the page."""
    where: str = ""
    """Filter on the metadata of the passages to count; empty for all passages."""
    after_document: str = ""
    """Last name of the previous page; empty for the first page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredDocument:
    """A document whose passages an index or a shard holds."""

    name: str
    passages: int
    """Number of passages that are held."""
    hash: str = ""
    """The `document_hash` of these passages; empty if they have none or several."""
    expected: int | None = None
    """The `document_passages` of these passages; None if they have none or several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassagePage(SeenWrites):
    """A page of passages of a shard, in the order of their ids in UTF-8."""

    passages: tuple[Passage, ...]
    complete: bool
    """Whether no passage follows. An incomplete page has at least one passage."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundPassages(SeenWrites):
    """The passages of a lookup that a shard has."""

    passages: tuple[Passage, ...]
    looked_up: int
    """Number of ids that were looked up, from the first one. Later ids did not fit into the reply.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageCount(SeenWrites):
    """The number of passages of a shard that match a filter."""

    passages: int
    content_bytes: int | None = None
    """Bytes of their titles, texts and metadata; None if they were not added up."""


@dataclass(frozen=True, slots=True)
class StoredTenant:
    """A tenant that has passages in an index or a shard."""

    name: str
    passages: int


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantPage(SeenWrites):
    """A page of tenants of a shard, in the order of their names."""

    tenants: tuple[StoredTenant, ...]
    complete: bool
    """Whether no tenant follows. An incomplete page has at least one tenant."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentPage(SeenWrites):
    """A page of documents of a shard, in the order of their names in UTF-8."""

    documents: tuple[StoredDocument, ...]
    complete: bool
    """Whether no document follows. An incomplete page has at least one document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantWordCounts(SeenWrites):
    """Counts of the words of the passages of a tenant in a shard."""

    containing: tuple[int, ...]
    """Number of passages that contain each of the tokens."""
    passages: int
    tokens: int
    """Number of tokens of all passages."""


def content_bytes(passage: Passage) -> int:
    """Returns the size of a passage in UTF-8, for `MAX_PAGE_BYTES`."""
    parts = (passage.id, passage.title, passage.text, passage.metadata)
    return sum(len(part.encode()) for part in parts)
