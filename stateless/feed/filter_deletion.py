"""Deletes passages that match a filter, and all passages of a tenant.

The ids of matching passages are listed page by page, and a page is deleted before the next one is
listed. So a call that is interrupted has deleted the first pages, and can be repeated.
"""

from dataclasses import replace

from winnow.deadline import Deadline
from winnow.domain.listing import DOCUMENT, MAX_PAGE_PASSAGES, SelectedFields
from winnow.domain.passage_request import PageRequest, PassageCountRequest
from winnow.domain.write import DeletedPassages, DeletedTenant, Deletion, FilteredDeletion
from winnow.errors import invalid_field
from winnow.filtering.writing import format_value
from winnow.stateless.feed.core import FeedCore
from winnow.stateless.feed.stream import StreamTally
from winnow.stateless.passages.core import PassageCore

_NO_FIELDS = SelectedFields(title=False, text=False, metadata=False)
_RESERVED_SHARE = 0.3
"""Share of the caller's time that must be left for another page to be deleted."""


class FilterDeletion:
    """Deletes passages of an index by filter."""

    def __init__(self, passages: PassageCore, feed: FeedCore) -> None:
        """`passages` lists the passages, `feed` deletes them."""
        self._passages, self._feed = passages, feed

    async def delete(
        self, request: FilteredDeletion, deadline: Deadline, client: str = ""
    ) -> DeletedPassages:
        """Deletes the matching passages until the deadline is near; raises as `FeedCore.delete`.

        A failed call may have deleted some of the passages. It is safe to repeat it.
        """
        where = _filter_of(request)
        if request.dry_run:
            count = PassageCountRequest(where=where, after=request.after, tenant=request.tenant)
            matched = await self._passages.count(count, deadline, client)
            return DeletedPassages(matched=matched, deleted=0, complete=True)
        enough = deadline.left() * _RESERVED_SHARE
        page_request = PageRequest(
            where=where,
            page_size=MAX_PAGE_PASSAGES,
            fields=_NO_FIELDS,
            after=request.after,
            tenant=request.tenant,
        )
        tally, matched = StreamTally(), 0
        while True:
            page = await self._passages.page(page_request, deadline, client)
            matched += len(page.passages)
            if page.passages:
                deletions = [Deletion(each.id, tenant=request.tenant) for each in page.passages]
                tally.add(await self._feed.delete(deletions, deadline, client))
            page_request = replace(page_request, page_token=page.next_page_token)
            if not page.next_page_token or deadline.left() < enough:
                summary = tally.summary()
                return DeletedPassages(
                    matched=matched,
                    deleted=summary.stored,
                    complete=not page.next_page_token,
                    positions=summary.positions,
                )

    async def delete_tenant(
        self, tenant: str, deadline: Deadline, client: str = ""
    ) -> DeletedTenant:
        """Counts the passages of a tenant, and deletes all of them; raises as `FeedCore.delete`."""
        count = PassageCountRequest(tenant=tenant)
        passages = await self._passages.count(count, deadline, client)
        positions = await self._feed.delete_tenant(tenant, deadline, client)
        return DeletedTenant(passages=passages, positions=tuple(positions))


def _filter_of(request: FilteredDeletion) -> str:
    """Returns the filter of a request. Raises InvalidRequestError unless it has exactly one."""
    if bool(request.where) == bool(request.document):
        raise invalid_field("filter", "give either a filter or a document")
    return request.where or f"{DOCUMENT} = {format_value(request.document)}"
