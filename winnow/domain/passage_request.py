"""Calls for passages of an index, as users make them, and their results.

`winnow.domain.listing` has the calls for one shard.
"""

from dataclasses import dataclass

from winnow.domain.coverage import Coverage
from winnow.domain.listing import ALL_FIELDS, SelectedFields, StoredDocument, StoredTenant
from winnow.domain.passage import Hit, Passage
from winnow.domain.question import PartialResults, Retriever
from winnow.domain.write import Position


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageSearchRequest:
    """A request for the passages that are most likely to answer a question.

    None leaves an option to the server's default.
    """

    question: str
    passages: int | None = None
    """Number of passages to return."""
    retriever: Retriever | None = None
    partial_results: PartialResults | None = None
    where: str = ""
    """Filter on the metadata of the passages; empty for all."""
    after: tuple[Position, ...] = ()
    """Writes that the passages must reflect."""
    fields: SelectedFields = ALL_FIELDS
    index: str = ""
    """Name of the index, or an alias of it; empty for the default index."""
    tenant: str = ""
    """Tenant of the passages; empty for an index without tenants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedPassage:
    """A passage that was found for a question."""

    passage: Passage
    hit: Hit
    shard: int
    score: float
    """Negative hybrid distance, or `words` if the retriever is sparse. Higher is better."""
    highlights: tuple[tuple[int, int], ...] = ()
    """Ranges of the text with words of the question: offsets of characters, end exclusive."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageSearchResult:
    """The passages that were found for a question, best first."""

    passages: tuple[RankedPassage, ...]
    coverage: Coverage
    question_truncated: bool = False
    """Whether the question was longer than the encoder reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassagesRequest:
    """A request for passages by their ids."""

    ids: tuple[str, ...]
    fields: SelectedFields = ALL_FIELDS
    after: tuple[Position, ...] = ()
    """Writes that the passages must reflect."""
    index: str = ""
    """Name of the index, or an alias of it; empty for the default index."""
    tenant: str = ""
    """Tenant of the passages; empty for an index without tenants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassagesById:
    """The passages with some ids."""

    passages: tuple[Passage, ...]
    """The passages that the index has, in the order of the request."""
    missing_ids: tuple[str, ...] = ()
    """Ids that the index lacks."""
    remaining_ids: tuple[str, ...] = ()
    """Ids that did not fit into the reply."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PageRequest:
    """A request for a page of passages or documents."""

    where: str = ""
    """Filter on the metadata of the passages; empty for all."""
    page_size: int | None = None
    """Maximum number of passages or documents; None leaves it to the server."""
    page_token: str = ""
    """Token of the page; empty for the first page."""
    fields: SelectedFields = ALL_FIELDS
    """Fields of passages; documents have none."""
    after: tuple[Position, ...] = ()
    """Writes that the page must reflect."""
    index: str = ""
    """Name of the index, or an alias of it; empty for the default index."""
    tenant: str = ""
    """Tenant of the passages; empty for an index without tenants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageResults:
    """A page of passages of an index, in the order of their ids."""

    passages: tuple[Passage, ...]
    next_page_token: str
    """Token of the next page; empty after the last page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentBatch:
    """A page of documents of an index, in the order of their names."""

    documents: tuple[StoredDocument, ...]
    next_page_token: str
    """Token of the next page; empty after the last page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PassageCountRequest:
    """A request for the number of passages that match a filter."""

    where: str = ""
    after: tuple[Position, ...] = ()
    """Writes that the number must reflect."""
    index: str = ""
    """Name of the index, or an alias of it; empty for the default index."""
    tenant: str = ""
    """Tenant of the passages; empty for an index without tenants."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantsRequest:
    """A request for a page of the tenants of an index."""

    page_size: int | None = None
    """Maximum number of tenants; None leaves it to the server."""
    page_token: str = ""
    """Token of the page; empty for the first page."""
    index: str = ""
    """Name of the index, or an alias of it; empty for the default index."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TenantResults:
    """A page of tenants of an index, in the order of their names."""

    tenants: tuple[StoredTenant, ...]
    next_page_token: str
    """Token of the next page; empty after the last page."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UsageRequest:
    """A request for what a tenant stores."""

    after: tuple[Position, ...] = ()
    """Writes that the numbers must reflect."""
    index: str = ""
    """Name of the index, or an alias of it; empty for the default index."""
    tenant: str = ""
