"""Makes the passages of all replicas of a shard one `PassageSource`."""

from collections.abc import Callable, Coroutine
from typing import Any, Protocol, TypeAlias, TypeVar

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
    SeenWrites,
)
from winnow.passage_source import PassageSource

Seen = TypeVar("Seen", bound=SeenWrites)
SendToPassages: TypeAlias = Callable[[PassageSource], Coroutine[Any, Any, Seen]]
"""Sends a call to the passages of one replica."""


class CallReplica(Protocol):
    """Calls a replica that has a write, and another one if the first is late or fails."""

    async def __call__(
        self, kind: str, send: SendToPassages[Seen], deadline: Deadline, after: int
    ) -> Seen:
        """Returns the result of the replica; `kind` names the call in traces."""


class ReplicatedPassages:
    """A `PassageSource` that calls one replica, and another one if the first is late or fails.

    Replicas of one log have the same passages, but some have more writes. `after` chooses a replica
    that has all acknowledged writes, so any replica can return any page.
    """

    def __init__(self, call: CallReplica) -> None:
        self._call = call

    async def page(self, request: PassageListing, deadline: Deadline) -> PassagePage:
        """Returns the next passages that match a filter, in the order of their ids."""
        return await self._call(
            "list passages", lambda each: each.page(request, deadline), deadline, request.after
        )

    async def look_up(self, request: PassageLookup, deadline: Deadline) -> FoundPassages:
        """Returns the passages with the given ids."""
        return await self._call(
            "get passages", lambda each: each.look_up(request, deadline), deadline, request.after
        )

    async def count(self, request: CountRequest, deadline: Deadline) -> PassageCount:
        """Counts the passages that match a filter."""
        return await self._call(
            "count passages", lambda each: each.count(request, deadline), deadline, request.after
        )

    async def documents(self, request: DocumentListing, deadline: Deadline) -> DocumentPage:
        """Returns the next documents by name."""
        return await self._call(
            "list documents",
            lambda each: each.documents(request, deadline),
            deadline,
            request.after,
        )
