"""The passages of a shard in this process."""

import contextlib
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractContextManager
from typing import TypeVar

from winnow.content_node.passages.documents import list_documents
from winnow.content_node.passages.listing import count_passages, list_passages, look_up
from winnow.content_node.reader.pool import ReaderPool
from winnow.content_node.shard.view import ShardView
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
)
from winnow.errors import ArtefactError, NotLoadedError
from winnow.inference.stop_signal import StopSignal

ViewAfter = Callable[[int, Deadline], Awaitable[ShardView]]
"""Returns the newest view of a shard once it has a write: `view_after(sequence, deadline)`."""
Admit = Callable[[], AbstractContextManager[None]]
"""Admits a call within the context; raises OverloadedError if too many calls are running."""
Request = TypeVar("Request", PassageListing, PassageLookup, CountRequest, DocumentListing)
Result = TypeVar("Result")


class LocalPassages:
    """A `PassageSource` that reads the newest view of a shard, in the threads for brief work."""

    def __init__(self, view_after: ViewAfter, pool: ReaderPool, admit: Admit) -> None:
        self._view_after, self._pool, self._admit = view_after, pool, admit

    async def page(self, request: PassageListing, deadline: Deadline) -> PassagePage:
        """Returns the next passages that match a filter, in the order of their ids."""
        return await self._run(list_passages, request, deadline)

    async def look_up(self, request: PassageLookup, deadline: Deadline) -> FoundPassages:
        """Returns the passages with the given ids."""
        return await self._run(look_up, request, deadline)

    async def count(self, request: CountRequest, deadline: Deadline) -> PassageCount:
        """Counts the passages that match a filter."""
        return await self._run(count_passages, request, deadline)

    async def documents(self, request: DocumentListing, deadline: Deadline) -> DocumentPage:
        """Returns the next documents by name."""
        return await self._run(list_documents, request, deadline)

    async def _run(
        self,
        work: Callable[[ShardView, Request, StopSignal], Result],
        request: Request,
        deadline: Deadline,
    ) -> Result:
        with self._admit():
            view = await self._view_after(request.after, deadline)

            def read(stop: StopSignal) -> Result:
                with readable():
                    return work(view, request, stop)

            done = await self._pool.call(read, deadline.before_reply(), request.client)
        return done.results[0]


@contextlib.contextmanager
def readable() -> Iterator[None]:
    """Converts errors of changed files to NotLoadedError, so that fronts call other replicas."""
    try:
        yield
    except ArtefactError as error:
        raise NotLoadedError(str(error)) from error
