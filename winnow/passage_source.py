"""The interface of a shard whose passages can be listed, whether local, remote or fake.

It stands beside `winnow.searcher`: these calls need no question and no model. Implementations:
`content_node.passages.local` (in this process), `stateless.replicas.passages_remote` (over gRPC),
`stateless.replicas.passages` (all replicas of a shard), `tests.fakes` (scripted).
"""

from typing import Protocol

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


class PassageSource(Protocol):
    """The passages of a shard.

    Each call sees one state of the shard, with at least the writes up to the request's `after`.
    All methods raise a `winnow.errors.WinnowError`: `DeadlineExceededError` after the deadline,
    `NotServedError` if the node is of an older version, `UnavailableError` or `OverloadedError` if
    the shard cannot serve the call.
    """

    async def page(self, request: PassageListing, deadline: Deadline) -> PassagePage:
        """Returns the next passages that match a filter, in the order of their ids.

        Raises InvalidRequestError if the filter is invalid.
        """

    async def look_up(self, request: PassageLookup, deadline: Deadline) -> FoundPassages:
        """Returns the passages with the given ids, in the order of the ids."""

    async def count(self, request: CountRequest, deadline: Deadline) -> PassageCount:
        """Counts the passages that match a filter.

        Raises InvalidRequestError if the filter is invalid.
        """

    async def documents(self, request: DocumentListing, deadline: Deadline) -> DocumentPage:
        """Returns the next documents by name, which are values of the metadata field `document`.

        Raises InvalidRequestError if the filter is invalid.
        """
