"""The parts of a front that are replaced when a shard is split."""

import asyncio
import contextlib
from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

from winnow.deadline import Deadline
from winnow.domain.partition import Partition
from winnow.domain.write import Position
from winnow.errors import UnavailableError
from winnow.stateless.answer.validation import knows_shards

_SPLIT_WAIT = 2.0
"""Maximum seconds to wait until this front knows of a split that the caller knows of."""


class Partitioned(Protocol):
    """A part that serves an index with a certain split into shards."""

    @property
    def partition(self) -> Partition:
        """The split of the index into shards."""


Part = TypeVar("Part", bound=Partitioned)


class CurrentPart(Generic[Part]):
    """Holds the part of a front that serves the index now, such as its answerer.

    Whenever the cluster changes, another part replaces it.
    """

    def __init__(self) -> None:
        self.value: Part | None = None
        """The current part; None before the first one."""
        self._replaced = asyncio.Event()
        """Is set when the part is replaced, and is then replaced itself."""

    def set(self, value: Part) -> None:
        """Makes `value` the current part."""
        self.value = value
        self._replaced.set()
        self._replaced = asyncio.Event()

    def get(self) -> Part:
        """Returns the current part; raises UnavailableError before the first one."""
        if self.value is None:
            raise UnavailableError(
                "not every shard of the index has been found yet: try again; if this persists, "
                "look for refused nodes in the front's log"
            )
        return self.value

    async def knowing(self, after: Sequence[Position], deadline: Deadline) -> Part:
        """Waits a little until the part knows the shards of these writes; returns the part.

        The caller may know of a split before this front does. The old shard never gets the writes
        to its halves, so a call that starts with the old shard would wait for them in vain.
        """
        if not after:
            return self.get()
        until = deadline.earlier(max(deadline.left() - _SPLIT_WAIT, deadline.left() / 2))
        with contextlib.suppress(TimeoutError):
            while not knows_shards(after, self.get().partition):
                async with asyncio.timeout(max(until.left(), 0)):
                    await self._replaced.wait()
        return self.get()  # it may have been replaced in the moment in which the time was over
