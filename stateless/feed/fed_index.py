"""An index that takes writes, and the choice among several indexes by name."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

from winnow.deadline import Deadline, Sleep
from winnow.domain.catalog import check_is_default
from winnow.domain.write import DeletedPassages, FilteredDeletion
from winnow.errors import IndexIsCopyError, NotServedError, invalid_field
from winnow.stateless.answer.validation import check_index_of_positions
from winnow.stateless.feed.core import FeedCore
from winnow.stateless.feed.filter_deletion import FilterDeletion


@dataclass(frozen=True, slots=True)
class FedIndex:
    """The parts of a front that write to one index."""

    core: FeedCore
    """Stores and deletes passages."""
    by_filter: FilterDeletion | None = None
    """Deletes passages by filter; None refuses that."""
    name: str = ""
    """Name of the index; empty if the front serves a single index."""

    async def delete_where(
        self, request: FilteredDeletion, deadline: Deadline, client: str
    ) -> DeletedPassages:
        """Deletes passages by filter, as `FilterDeletion.delete`.

        Raises NotServedError if the front does not delete by filter.
        """
        if self.by_filter is None:
            raise NotServedError("this front does not delete by filter")
        check_index_of_positions(request.after, self.name)
        return await self.by_filter.delete(request, deadline, client)


_FIRST_PAUSE = 0.25
"""Seconds after which the index of a name is chosen again; later pauses are longer."""
Result = TypeVar("Result")
ChooseFed = Callable[[str], FedIndex]
"""Chooses the index of writes by its name, which is empty for the default index.

Raises NotFoundError if there is none.
"""


def only_fed(core: FeedCore, by_filter: FilterDeletion | None = None) -> ChooseFed:
    """Returns the choice of a front that writes to a single index without a name."""
    fed = FedIndex(core, by_filter)

    def choose(name: str) -> FedIndex:
        check_is_default(name)
        return fed

    return choose


async def write_to_current(
    choose: ChooseFed,
    name: str,
    deadline: Deadline,
    write: Callable[[FedIndex], Awaitable[Result]],
    sleep: Sleep = asyncio.sleep,
) -> tuple[FedIndex, Result]:
    """Calls `write` with the index that a name stands for; returns the index and the result.

    If a copy has just replaced this index, chooses again until the front knows of it.
    """
    pause = _FIRST_PAUSE
    while True:
        fed = choose(name)
        try:
            return fed, await write(fed)
        except IndexIsCopyError:
            if deadline.left() <= pause:
                raise
            await sleep(pause)
            pause *= 2


class IndexMessage(Protocol):
    """A message that names its index."""

    index: str


NamingMessage = TypeVar("NamingMessage", bound=IndexMessage)


async def with_one_index(
    first: NamingMessage, others: AsyncIterator[NamingMessage]
) -> AsyncIterator[NamingMessage]:
    """Yields all messages of a stream.

    Raises InvalidRequestError if a message names another index than the first one.
    """
    yield first
    async for message in others:
        if message.index not in ("", first.index):
            raise invalid_field("index", "a stream has messages for one index only")
        yield message
