"""Lets a half follow its parent, a shard of the same process that is being split."""

from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager

from winnow.content_node.live.shard import LiveShard
from winnow.content_node.transfer.batches import next_batch, wait_for_write
from winnow.content_node.transfer.following import Handover, LogBatch, LogFollower
from winnow.domain.partition import halves_of
from winnow.domain.shard import ShardInfo
from winnow.errors import UnavailableError, WinnowError

_WAIT = 0.2
"""Seconds to wait for a write before an empty batch."""
_MAX_LAG = 1_000
"""Maximum number of writes that the other half may lack when the parent is asked to hand over."""


class LocalParent:
    """The parent shard of a half: an `Owner` in this process.

    Both halves take over after the same last write.
    """

    def __init__(self, shard: LiveShard, half: int) -> None:
        """`half` is the number of the half that follows the parent."""
        self._shard, self._half = shard, half

    async def hand_over(self) -> Handover:
        """Makes the parent take no more writes, because its halves take them.

        Raises the errors of `LiveShard.hand_over`, and UnavailableError if the disk cannot be
        written.
        """
        try:
            sequence = await self._shard.hand_over("")
        except OSError as error:
            raise UnavailableError(f"cannot record the split: {error.strerror}") from error
        return Handover(sequence, self._shard.log_id, self._shard.journal_position)

    async def follow(self, after: int) -> AsyncGenerator[LogBatch, None]:
        """Yields the writes after a sequence number in batches, without end; some are empty."""
        while True:
            self._shard.hold_log(f"half {self._half}", after)
            batch = await next_batch(self._shard, after)
            yield batch
            after += len(batch.writes)
            if not batch.writes:
                await wait_for_write(self._shard, after + 1, _WAIT)


def follow_parent(
    half: LiveShard, info: ShardInfo, live_shard: Callable[[int], LiveShard]
) -> LogFollower:
    """Returns the follower that keeps a half up to date with its parent, until the half takes over.

    `live_shard` returns a shard of this process by its number, or raises UnavailableError.
    """
    parent = half.custody.parent
    assert parent is not None
    (other,) = {*halves_of(parent, info.shards)} - {info.shard}

    @asynccontextmanager
    async def open_parent(_: str) -> AsyncIterator[LocalParent]:
        yield LocalParent(live_shard(parent), info.shard)

    def other_is_ready() -> bool:
        """Whether the other half exists, and lacks few of the writes of this half.

        Also if the parent has ended: then the other half may be on another node.
        """
        try:
            if not live_shard(parent).takes_writes:
                return True
            sibling = live_shard(other)
        except WinnowError:
            return False
        return sibling.sequence >= half.sequence - _MAX_LAG

    return LogFollower(half, open_parent, may_request_handover=other_is_ready)
