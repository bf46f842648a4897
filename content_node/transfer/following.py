"""Follows the log of a shard's owner, and takes the shard over once it has caught up.

The owner is on another node if the shard moves. A half follows the shard that it is a part of.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import KW_ONLY, dataclass
from typing import Protocol

import structlog

from winnow.content_node.live.custody import Custody, Role
from winnow.content_node.live.entry import LoggedWrite
from winnow.errors import ArtefactError, IdentityError, UnavailableError, WinnowError

_log = structlog.get_logger("content_node")
_RETRY_INTERVAL = 0.5
"""Seconds until a failed attempt to follow is repeated."""
_FAILURES_PER_WARNING = 60
"""Failures in a row for which one warning is logged."""
Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class LogBatch:
    """The next writes of a log that another node follows."""

    log_id: str
    """Name of the log; empty before the first write."""
    writes: Sequence[LoggedWrite]
    last: int
    """The number of the last write of the log's node."""
    _: KW_ONLY
    is_trimmed: bool = False
    """Whether the log no longer has the next writes."""
    takes_writes: bool = True
    """Whether that node takes the writes; false if it has handed the shard over."""


@dataclass(frozen=True, slots=True)
class HandedOver:
    """The end of the log of a shard that its owner has handed over."""

    sequence: int
    log_id: str
    journal_position: str = ""
    """The position in the journal that the shard followed; empty if it follows none."""


class Owner(Protocol):
    """The shard of the node that takes its writes; see `content_node.transfer.remote`."""

    async def hand_over(self) -> HandedOver:
        """Makes the owner stop taking writes."""

    def follow(self, after: int) -> AsyncGenerator[LogBatch, None]:
        """Yields the writes after a sequence number, without end."""


class Copy(Protocol):
    """The copy that follows; see `content_node.live.shard`."""

    @property
    def custody(self) -> Custody:
        """The role of the copy."""

    @property
    def sequence(self) -> int:
        """The number of the copy's last write."""

    async def store_followed(self, writes: Sequence[LoggedWrite], log_id: str) -> None:
        """Stores writes of the owner's log as they are."""

    async def take_over(self, log_id: str = "", journal_position: str = "") -> None:
        """Takes the writes of the shard from now on.

        If the owner followed a journal, the copy follows it from `journal_position`.
        """


OpenOwner = Callable[[str], AbstractAsyncContextManager[Owner]]
"""Opens the shard on the node with a name. Raises UnavailableError if its address is unknown."""


class LogFollower:
    """Keeps a copy up to date with its owner, until the copy becomes the owner."""

    def __init__(
        self,
        copy: Copy,
        open_owner: OpenOwner,
        sleep: Sleep = asyncio.sleep,
        *,
        may_ask: Callable[[], bool] = lambda: True,
    ) -> None:
        """`may_ask` returns whether the owner may be asked to hand the shard over now."""
        self._copy, self._open_owner, self._sleep = copy, open_owner, sleep
        self._may_ask = may_ask
        self._asking = asyncio.Lock()
        """Lock that is held while the owner is asked to hand over, or asked whether it has done so.
        """
        self._wanted = True
        """Whether the copy is to become the owner."""

    async def run(self) -> None:
        """Follows the owner until the copy has taken over.

        Raises ArtefactError if the copy cannot follow any more: the shard must be copied again.
        """
        failures = 0
        while self._copy.custody.role is Role.FOLLOWER:
            try:
                await self._follow()
            except (ArtefactError, IdentityError):
                raise
            except WinnowError as error:
                if failures % _FAILURES_PER_WARNING == 0:
                    _log.warning("the owner is not followed; trying again", reason=str(error))
                failures += 1
                await self._sleep(_RETRY_INTERVAL)

    async def may_drop(self) -> bool:
        """Whether the copy may be removed, because its owner takes the writes.

        If so, it never takes over.

        Raises a WinnowError if the owner does not say.
        """
        async with (
            self._asking,
            self._open_owner(self._copy.custody.node) as owner,
            aclosing(owner.follow(self._copy.sequence)) as batches,
        ):
            self._wanted = not (await anext(batches)).takes_writes
        return not self._wanted

    def keep(self) -> None:
        """Lets the copy take over again, after `may_drop` was true and the copy was not dropped."""
        self._wanted = True

    async def _follow(self) -> None:
        node, end = self._copy.custody.node, None
        async with (
            self._open_owner(node) as owner,
            aclosing(owner.follow(self._copy.sequence)) as batches,
        ):
            async for batch in batches:
                if batch.is_trimmed:
                    raise ArtefactError(
                        f"node {node} no longer has the writes after {self._copy.sequence}: copy "
                        "the shard again"
                    )
                await self._copy.store_followed(batch.writes, batch.log_id)
                if end is None and self._copy.sequence >= batch.last:
                    end = await self._ask(owner)
                if end is not None and self._copy.sequence >= end.sequence:
                    await self._take_over(end, node)
                    return

    async def _ask(self, owner: Owner) -> HandedOver | None:
        """Asks the owner to hand over; returns None if the copy is not to become the owner."""
        async with self._asking:
            return await owner.hand_over() if self._wanted and self._may_ask() else None

    async def _take_over(self, end: HandedOver, node: str) -> None:
        if self._copy.sequence > end.sequence:
            raise IdentityError(
                f"node {node} handed the shard over at write {end.sequence}, but this copy has "
                f"write {self._copy.sequence}: copy the shard again"
            )
        try:
            await self._copy.take_over(end.log_id, end.journal_position)
        except OSError as error:
            raise UnavailableError(
                f"cannot record that the shard was taken over: {error.strerror}"
            ) from error
        _log.info("shard taken over", node=node or "this one", sequence=end.sequence)
