"""Fake passages of a shard: a dictionary that can fail, wait or return short pages."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from winnow.deadline import Deadline
from winnow.domain.listing import (
    CountRequest,
    DocumentListing,
    DocumentPage,
    FoundPassages,
    PassageCount,
    PassageListing,
    PassageLookup,
    PassagePage,
    Seen,
    ShardRequest,
    StoredDocument,
    StoredTenant,
    TenantListing,
    TenantPage,
)
from winnow.domain.passage import Passage
from winnow.domain.tenant import tenant_of
from winnow.errors import WinnowError


@dataclass
class FakePassages:
    """A `PassageSource` whose filter is a predicate on a passage."""

    stored: dict[str, Passage] = field(default_factory=dict)
    """The passages by id. Tests may change them between calls."""
    matches: Callable[[str, Passage], bool] = lambda _where, _passage: True
    """Whether a passage matches a filter; called with the text of the filter."""
    page_limit: int = 1_000
    """Most passages, ids or documents of a reply, as if these had a megabyte."""
    fails: WinnowError | None = None
    """Raised by every call."""
    hangs: asyncio.Event | None = None
    """If set to an event, every call waits for it."""
    sequence: int = 0
    requests: list[ShardRequest[Any]] = field(default_factory=list)

    def put(self, identifier: str, text: str = "some words", **metadata: object) -> None:
        """Stores a passage."""
        content = json.dumps(metadata) if metadata else ""
        self.stored[identifier] = Passage(identifier, "Title", text, content)

    async def fetch(self, request: ShardRequest[Seen], deadline: Deadline) -> Seen:
        self.requests.append(request)
        await asyncio.sleep(0)
        if self.fails is not None:
            raise self.fails
        if self.hangs is not None:
            await self.hangs.wait()
        replies = {
            PassageListing: self._page,
            PassageLookup: self._look_up,
            CountRequest: self._count,
            DocumentListing: self._documents,
            TenantListing: self._tenants,
        }
        reply: Any = replies[type(request)]
        result: Seen = reply(request)
        return result

    def _page(self, request: PassageListing) -> PassagePage:
        following = [each for each in self._matching(request.where) if each > request.after_id]
        following.sort(key=str.encode)
        page = following[: min(request.limit, self.page_limit)]
        return PassagePage(
            passages=tuple(self._fields(each, request) for each in page),
            complete=len(page) == len(following),
            sequence=self.sequence,
        )

    def _look_up(self, request: PassageLookup) -> FoundPassages:
        ids = request.ids[: self.page_limit]
        return FoundPassages(
            passages=tuple(self._fields(each, request) for each in ids if each in self.stored),
            looked_up=len(ids),
            sequence=self.sequence,
        )

    def _count(self, request: CountRequest) -> PassageCount:
        found = [self.stored[each] for each in self._matching(request.where)]
        size = sum(each.content_bytes for each in found)
        return PassageCount(
            passages=len(found),
            content_bytes=size if request.with_bytes else None,
            sequence=self.sequence,
        )

    def _tenants(self, request: TenantListing) -> TenantPage:
        counts = Counter(filter(None, map(tenant_of, self.stored)))
        names = sorted(each for each in counts if each > request.after_tenant)
        page = names[: min(request.limit, self.page_limit)]
        return TenantPage(
            tenants=tuple(StoredTenant(each, counts[each]) for each in page),
            complete=len(page) == len(names),
            sequence=self.sequence,
        )

    def _documents(self, request: DocumentListing) -> DocumentPage:
        found: dict[str, StoredDocument] = {}
        for each in self._matching(request.where):
            metadata = json.loads(self.stored[each].metadata or "{}")
            name = metadata.get("document", "")
            before = found.get(name)
            summary = StoredDocument(
                name=name,
                passages=1 + (before.passages if before else 0),
                hash=metadata.get("document_hash", ""),
                expected=metadata.get("document_passages"),
            )
            if name > request.after_document:
                found[name] = summary
        names = sorted(found, key=str.encode)
        page = names[: min(request.limit, self.page_limit)]
        return DocumentPage(
            documents=tuple(found[name] for name in page),
            complete=len(page) == len(names),
            sequence=self.sequence,
        )

    def _matching(self, where: str) -> list[str]:
        return [name for name, each in self.stored.items() if self.matches(where, each)]

    def _fields(self, identifier: str, request: PassageListing | PassageLookup) -> Passage:
        passage, fields = self.stored[identifier], request.fields
        return replace(
            passage,
            title=passage.title if fields.title else "",
            text=passage.text if fields.text else "",
            metadata=passage.metadata if fields.metadata else "",
        )
