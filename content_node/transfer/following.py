"""Follows the log of a shard's owner, and takes the shard over once it has caught up.

If the shard moves, the owner is on another node. A half follows its parent on the same node.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from dataclasses import KW_ONLY, dataclass
from typing import Protocol

import structlog

from winnow.content_node.live.custody import Role
from winnow.content_node.live.log_entry import LoggedWrite
from winnow.content_node.live.shard import LiveShard
from winnow.deadline import Sleep
from winnow.errors import ArtefactError, IdentityError, UnavailableError, WinnowError

_log = structlog.get_logger("content_node")
_RETRY_INTERVAL = 0.5
"""Seconds until a failed attempt to follow is repeated."""
_FAILURES_PER_WARNING = 60
"""Failures in a row for which one warning is logged."""


@dataclass(frozen=True, slots=True)
class LogBatch:
    """The next writes of the owner's log."""

    log_id: str
    """Id of the log; empty before the first write."""
    writes: Sequence[LoggedWrite]
    last: int
    """The number of the owner's last write."""
    _: KW_ONLY
    is_trimmed: bool = False
    """Whether the log no longer has the next writes."""
    takes_writes: bool = True
    """Whether the owner takes the writes; false once it has handed the shard over."""


@dataclass(frozen=True, slots=True)
class Handover:
    """The end of the owner's log, after which the copy takes over."""

    sequence: int
    """The number of the owner's last write."""
    log_id: str
    journal_position: str = ""
    """The position in the journal that the shard followed; empty if it follows none."""


class Owner(Protocol):
    """The interface of the shard that takes the writes: a `PeerShard` or a `LocalParent`."""

    async def hand_over(self) -> Handover:
        """Makes the owner stop taking writes."""

    def follow(self, after: int) -> AsyncGenerator[LogBatch, None]:
        """Yields the writes after a sequence number in batches, without end."""


OpenOwner = Callable[[str], AbstractAsyncContextManager[Owner]]
"""Opens the shard on the node with this name; raises UnavailableError for an unknown address."""


class LogFollower:
    """Keeps a copy up to date with its owner, until the copy becomes the owner."""

    def __init__(
        self,
        copy: LiveShard,
        open_owner: OpenOwner,
        sleep: Sleep = asyncio.sleep,
        *,
        may_request_handover: Callable[[], bool] = lambda: True,
    ) -> None:
        """`may_request_handover` returns whether to ask the owner to hand over the shard now."""
        self._copy, self._open_owner, self._sleep = copy, open_owner, sleep
        self._may_request_handover = may_request_handover
        self._request_lock = asyncio.Lock()
        """Held while the owner is asked to hand over, or asked whether it still takes writes."""
        self._will_take_over = True
        """Whether the copy takes over once it has caught up."""

    async def run(self) -> None:
        """Follows the owner until the copy has taken over.

        Raises ArtefactError if the copy cannot follow any more: the shard must be copied again.
        """
        failures = 0
        while self._copy.custody.role is Role.FOLLOWER:
            try:
                await self._follow_log()
            except (ArtefactError, IdentityError):
                raise
            except WinnowError as error:
                if failures % _FAILURES_PER_WARNING == 0:
                    _log.warning("the owner is not followed; trying again", reason=str(error))
                failures += 1
                await self._sleep(_RETRY_INTERVAL)

    async def try_prepare_drop(self) -> bool:
        """Returns whether the copy may be removed: whether the owner still takes the writes.

        After True the copy does not take over, unless `cancel_drop` is called.

        Raises a WinnowError if the owner does not reply.
        """
        async with (
            self._request_lock,
            self._open_owner(self._copy.custody.node) as owner,
            aclosing(owner.follow(self._copy.sequence)) as batches,
        ):
            self._will_take_over = not (await anext(batches)).takes_writes
        return not self._will_take_over

    def cancel_drop(self) -> None:
        """Undoes `try_prepare_drop` for a copy that was not removed: it may take over again."""
        self._will_take_over = True

    async def _follow_log(self) -> None:
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
                    end = await self._request_handover(owner)
                if end is not None and self._copy.sequence >= end.sequence:
                    await self._take_over(end, node)
                    return

    async def _request_handover(self, owner: Owner) -> Handover | None:
        """Asks the owner to hand over; returns None if the copy must not take over now."""
        async with self._request_lock:
            if self._will_take_over and self._may_request_handover():
                return await owner.hand_over()
            return None

    async def _take_over(self, end: Handover, node: str) -> None:
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
