"""An index that takes writes, the choice among several indexes by name, and that of the tenant."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Protocol, TypeVar

from winnow.deadline import Deadline, Sleep
from winnow.domain.catalog import check_is_default
from winnow.domain.quota import StorageUse
from winnow.domain.write import (
    DeletedPassages,
    DeletedTenant,
    Deletion,
    FedPassage,
    FeedSummary,
    FilteredDeletion,
    Position,
    WriteResult,
)
from winnow.errors import IndexIsCopyError, NotServedError, NotWritableError, invalid_field
from winnow.stateless.answer.validation import check_index_of_positions
from winnow.stateless.feed.core import Fed, FeedCore, NewDeadline
from winnow.stateless.feed.filter_deletion import FilterDeletion
from winnow.stateless.tenants.quotas import NO_LIMITS, TenantLimits
from winnow.stateless.tenants.storage import TenantStorage
from winnow.stateless.tenants.tenancy import NO_TENANT, Tenancy, TenantScope


@dataclass(frozen=True, slots=True)
class FedIndex:
    """The parts of a front that write to one index."""

    core: FeedCore
    """Stores and deletes passages."""
    by_filter: FilterDeletion | None = None
    """Deletes passages by filter; None refuses that."""
    name: str = ""
    """Name of the index; empty if the front serves a single index."""
    tenancy: Tenancy | None = None
    """Tells the tenant of each request; None for an index that cannot have tenants."""
    _: KW_ONLY
    storage: TenantStorage | None = None
    """Tells what tenants store; None if they have no limits."""
    source: str = ""
    """Name of the index that takes the writes, if the request names a copy of it; else empty."""

    def of_tenant(self, requested: str, *, is_repeated: bool = False) -> "TenantFeed":
        """Returns what the current caller may write to; see `Tenancy.scope_of`.

        A repeated write was counted for the rate of the tenant before.
        """
        scope = NO_TENANT if self.tenancy is None else self.tenancy.scope_of(requested)
        return TenantFeed(self, scope, NO_LIMITS if is_repeated else scope.limits)


class TenantFeed:
    """Writes to an index for the tenant of one caller.

    The passages and deletions that it gets must have this tenant. Its positions are those that the
    tenant may see. The methods raise as those of `FeedCore`.
    """

    def __init__(self, index: FedIndex, scope: TenantScope, limits: TenantLimits) -> None:
        """`limits` are those of how often the tenant writes."""
        self._index, self._scope, self._limits = index, scope, limits
        self.name, self.tenant = index.name, scope.tenant

    @property
    def storage(self) -> StorageUse | None:
        """What the tenant stores, and how much it may store; None if that is not known."""
        known = self._index.storage
        return known.use_of(self.tenant) if known is not None and self.tenant else None

    def admit_writes(self, writes: int) -> None:
        """Counts writes for the rate of the tenant; raises OverloadedError beyond it."""
        self._limits.admit_writes(writes)

    async def put(
        self, passages: Sequence[FedPassage], deadline: Deadline, client: str
    ) -> list[WriteResult]:
        """Stores passages."""
        self.admit_writes(len(passages))
        with self._scope.errors():
            return self._sealed(await self._index.core.put(passages, deadline, client))

    async def delete(
        self, deletions: Sequence[Deletion], deadline: Deadline, client: str
    ) -> list[WriteResult]:
        """Deletes passages by their ids."""
        self.admit_writes(len(deletions))
        with self._scope.errors():
            return self._sealed(await self._index.core.delete(deletions, deadline, client))

    async def put_stream(
        self, messages: AsyncIterator[Sequence[FedPassage]], new_deadline: NewDeadline, client: str
    ) -> FeedSummary:
        """Stores the passages of a stream."""
        with self._scope.errors():
            summary = await self._index.core.put_stream(self._paced(messages), new_deadline, client)
        return self._sealed_summary(summary)

    async def delete_stream(
        self, messages: AsyncIterator[Sequence[Deletion]], new_deadline: NewDeadline, client: str
    ) -> FeedSummary:
        """Deletes the passages of a stream."""
        with self._scope.errors():
            summary = await self._index.core.delete_stream(
                self._paced(messages), new_deadline, client
            )
        return self._sealed_summary(summary)

    async def delete_where(
        self, request: FilteredDeletion, deadline: Deadline, client: str
    ) -> DeletedPassages:
        """Deletes passages by filter, as `FilterDeletion.delete`.

        Raises NotServedError if the front does not delete by filter.
        """
        if self._index.by_filter is None:
            raise NotServedError("this front does not delete by filter")
        check_index_of_positions(request.after, self.name)
        self.admit_writes(1)
        request = replace(request, tenant=self.tenant, after=self._scope.open(request.after))
        with self._scope.errors():
            deleted = await self._index.by_filter.delete(request, deadline, client)
        return replace(deleted, positions=tuple(map(self._scope.seal, deleted.positions)))

    async def _paced(self, messages: AsyncIterator[Sequence[Fed]]) -> AsyncIterator[Sequence[Fed]]:
        """Yields the messages of a stream, no faster than the quota of the tenant allows."""
        async for each in messages:
            await self._limits.wait_for_writes(len(each))
            yield each

    async def delete_tenant(self, deadline: Deadline, client: str) -> DeletedTenant:
        """Deletes all passages of the tenant, as `FeedCore.delete_tenant`.

        Raises PermissionDeniedError unless the caller is an administrator, and NotServedError if
        the front does not delete by filter.
        """
        if self._index.tenancy is not None:
            self._index.tenancy.check_administrator()
        if not self.tenant:
            raise invalid_field("index", "has no tenants")
        if self._index.by_filter is None:
            raise NotServedError("this front does not delete tenants")
        with self._scope.errors():
            deleted = await self._index.by_filter.delete_tenant(self.tenant, deadline, client)
        return replace(deleted, positions=tuple(map(self._scope.seal, deleted.positions)))

    def _sealed(self, results: list[WriteResult]) -> list[WriteResult]:
        if not self.tenant:
            return results
        # sealed positions have no order, so each result gets the last one of the call in its shard
        last: dict[int, Position] = {}
        for each in results:
            shard = each.position.shard
            last[shard] = max(each.position, last.get(shard, each.position))
        sealed = {shard: self._scope.seal(position) for shard, position in last.items()}
        return [replace(each, position=sealed[each.position.shard]) for each in results]

    def _sealed_summary(self, summary: FeedSummary) -> FeedSummary:
        return replace(summary, positions=tuple(map(self._scope.seal, summary.positions)))


_FIRST_PAUSE, _MAX_PAUSE = 0.25, 2.0
"""Seconds after which the index of a name is chosen again; later pauses are longer."""
_SWITCH_SECONDS = 4.0
"""Seconds after which every front has read that an alias was switched."""
Result = TypeVar("Result")
ChooseFed = Callable[[str], FedIndex]
"""Chooses the index of writes by its name, which is empty for the default index.

Raises NotFoundError if there is none.
"""


def only_fed(index: FedIndex) -> ChooseFed:
    """Returns the choice of a front that writes to a single index without a name."""

    def choose(name: str) -> FedIndex:
        check_is_default(name)
        return index

    return choose


async def write_to_current(
    choose: ChooseFed,
    request: "IndexMessage",
    deadline: Deadline,
    write: Callable[[TenantFeed], Awaitable[Result]],
    sleep: Sleep = asyncio.sleep,
) -> tuple[TenantFeed, Result]:
    """Calls `write` with the index and the tenant of a request; returns both and the result.

    If a copy has just replaced this index, chooses again until the front knows of it.

    Raises NotWritableError if the request names a copy.
    """
    pause, waited = _FIRST_PAUSE, 0.0
    while True:
        chosen = choose(request.index)
        fed = chosen.of_tenant(request.tenant, is_repeated=waited > 0.0)
        try:
            return fed, await write(fed)
        except IndexIsCopyError as error:
            if chosen.source and waited >= _SWITCH_SECONDS:
                raise NotWritableError(
                    f"{chosen.name} is a copy of {chosen.source}, which takes the writes: write to "
                    f"{chosen.source}, or to its alias"
                ) from error
            if deadline.left() <= pause:
                raise
            await sleep(pause)
            waited += pause
            pause = min(2 * pause, _MAX_PAUSE)


class IndexMessage(Protocol):
    """A message that names its index and its tenant."""

    index: str
    tenant: str


NamingMessage = TypeVar("NamingMessage", bound=IndexMessage)


async def with_one_index(
    first: NamingMessage, others: AsyncIterator[NamingMessage], tenant: str
) -> AsyncIterator[NamingMessage]:
    """Yields all messages of a stream for `tenant`, which the key or the first message names.

    Raises InvalidRequestError if a message names another index or tenant than the first one.
    """
    yield first
    async for message in others:
        if message.index not in ("", first.index):
            raise invalid_field("index", "a stream has messages for one index only")
        if message.tenant not in ("", tenant):
            raise invalid_field("tenant", "a stream has messages for one tenant only")
        yield message
