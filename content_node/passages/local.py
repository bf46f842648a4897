"""The passages of a shard in this process."""

import contextlib
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

from winnow.content_node.passages.documents import list_documents
from winnow.content_node.passages.listing import count_passages, list_passages, look_up
from winnow.content_node.passages.tenants import count_words, list_tenants
from winnow.content_node.shard.tenant_view import view_of_tenant
from winnow.content_node.shard.view import ShardView
from winnow.content_node.tenants import (
    check_has_tenants,
    check_tenant,
    request_for_shard,
    result_for_tenant,
)
from winnow.deadline import Deadline
from winnow.domain.listing import (
    CountRequest,
    DocumentListing,
    PassageListing,
    PassageLookup,
    Seen,
    ShardRequest,
    TenantListing,
    TenantWordsRequest,
)
from winnow.errors import ArtefactError, NotLoadedError
from winnow.inference.stop_signal import StopSignal
from winnow.reading.pool import ReaderPool

ViewAfter = Callable[[int, Deadline], Awaitable[ShardView]]
"""Returns the newest view of a shard once it has a write: `view_after(sequence, deadline)`."""
Admit = Callable[[], AbstractContextManager[None]]
"""Admits a call within the context; raises OverloadedError if too many calls are running."""
_WORK: Mapping[type[ShardRequest[Any]], Callable[[ShardView, Any, StopSignal], Any]] = {
    PassageListing: list_passages,
    PassageLookup: look_up,
    CountRequest: count_passages,
    DocumentListing: list_documents,
    TenantListing: list_tenants,
    TenantWordsRequest: count_words,
}


class LocalPassages:
    """A `PassageSource` that reads the newest view of a shard, in the threads for brief work."""

    def __init__(
        self,
        view_after: ViewAfter,
        pool: ReaderPool,
        admit: Admit,
        *,
        has_tenants: bool = False,
    ) -> None:
        """`has_tenants`: whether each request must name a tenant, whose passages alone it sees."""
        self._view_after, self._pool, self._admit = view_after, pool, admit
        self._has_tenants = has_tenants

    async def fetch(self, request: ShardRequest[Seen], deadline: Deadline) -> Seen:
        """Returns the result of a request."""
        if isinstance(request, (TenantListing, TenantWordsRequest)):
            check_has_tenants(self._has_tenants)
        if not isinstance(request, TenantListing):  # which is for all tenants
            check_tenant(request.tenant, self._has_tenants)
        work = _WORK[type(request)]
        with self._admit():
            view = await self._view_after(request.after, deadline)

            def read(stop: StopSignal) -> Seen:
                with readable():
                    if not request.tenant:
                        result: Seen = work(view, request, stop)
                        return result
                    own = view_of_tenant(view, request.tenant)
                    result = work(own, request_for_shard(request), stop)
                return result_for_tenant(result)

            done = await self._pool.call(read, deadline.before_reply(), request.client)
        return done.results[0]


@contextlib.contextmanager
def readable() -> Iterator[None]:
    """Converts errors of changed files to NotLoadedError, so that fronts call other replicas."""
    try:
        yield
    except ArtefactError as error:
        raise NotLoadedError(str(error)) from error
