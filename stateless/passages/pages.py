"""Merges the pages of all shards into one page. Pure.

Every shard returns a part of its passages in the order of their ids. A shard that has more passages
may have one just after its last id. So the merged page ends at the smallest last id of these
shards.
"""

import math
from collections.abc import Iterable, Sequence
from typing import TypeVar

from winnow.domain.listing import (
    MAX_PAGE_BYTES,
    DocumentPage,
    PassagePage,
    StoredDocument,
    StoredTenant,
    TenantPage,
    content_bytes,
)
from winnow.domain.passage import Passage

_SURPLUS_SHARE, _SURPLUS = 0.2, 8
"""Passages that each shard returns beyond its share of a page: a share of it, and a number."""
Value = TypeVar("Value")


def limit_of_shard(limit: int, shards: int) -> int:
    """Returns how many passages each of some shards returns for a page of `limit` passages.

    Ids are spread by a hash, so the passages of a page are spread about evenly. If a shard returns
    too few, the page is shorter.
    """
    return min(limit, math.ceil(limit / shards * (1 + _SURPLUS_SHARE)) + _SURPLUS)


def merge_passages(pages: Sequence[PassagePage], limit: int) -> tuple[tuple[Passage, ...], bool]:
    """Returns the passages of a page, and whether no passage follows.

    The page has at most `limit` passages, and ends once they have `MAX_PAGE_BYTES`.
    """
    ends = [page.passages[-1].id for page in pages if not page.complete]
    entries = ((each.id, each) for page in pages for each in page.passages)
    ordered, complete = _merge_entries(entries, ends)
    passages = [each for _, each in ordered]
    kept = _count_fitting(passages[:limit])
    return tuple(passages[:kept]), complete and kept == len(passages)


def merge_documents(
    pages: Sequence[DocumentPage], limit: int
) -> tuple[tuple[StoredDocument, ...], bool]:
    """Returns the documents of a page, and whether no document follows.

    The parts of a document on several shards become one.
    """
    ends = [page.documents[-1].name for page in pages if not page.complete]
    entries = ((each.name, each) for page in pages for each in page.documents)
    ordered, complete = _merge_entries(entries, ends)
    documents: list[StoredDocument] = []
    for _, each in ordered:
        if documents and documents[-1].name == each.name:
            documents[-1] = _join_documents(documents[-1], each)
        else:
            documents.append(each)
    return tuple(documents[:limit]), complete and len(documents) <= limit


def merge_tenants(pages: Sequence[TenantPage], limit: int) -> tuple[tuple[StoredTenant, ...], bool]:
    """Returns the tenants of a page, and whether no tenant follows.

    The passages of a tenant in the parts of a split shard are added up.
    """
    ends = [page.tenants[-1].name for page in pages if not page.complete]
    entries = ((each.name, each.passages) for page in pages for each in page.tenants)
    ordered, complete = _merge_entries(entries, ends)
    passages: dict[str, int] = {}
    for name, count in ordered:
        passages[name] = passages.get(name, 0) + count
    tenants = [StoredTenant(name, count) for name, count in passages.items()]
    return tuple(tenants[:limit]), complete and len(tenants) <= limit


def _merge_entries(
    entries: Iterable[tuple[str, Value]], ends: Sequence[str]
) -> tuple[list[tuple[str, Value]], bool]:
    """Sorts entries by name in UTF-8, up to the smallest of `ends`; returns whether none is cut."""
    ordered = sorted(entries, key=lambda entry: entry[0].encode())
    if not ends:
        return ordered, True
    end = min(map(str.encode, ends))
    return [entry for entry in ordered if entry[0].encode() <= end], False


def _count_fitting(passages: Sequence[Passage]) -> int:
    size = 0
    for count, passage in enumerate(passages, 1):
        size += content_bytes(passage)
        if size >= MAX_PAGE_BYTES:
            return count
    return len(passages)


def _join_documents(first: StoredDocument, second: StoredDocument) -> StoredDocument:
    return StoredDocument(
        name=first.name,
        passages=first.passages + second.passages,
        hash=first.hash if first.hash == second.hash else "",
        expected=first.expected if first.expected == second.expected else None,
    )
