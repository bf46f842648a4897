"""Reads the log of a served shard in batches, for copies that follow the shard."""

import asyncio
from collections.abc import Sequence

from winnow.content_node.live.log_entry import LoggedWrite
from winnow.content_node.live.shard import LiveShard
from winnow.content_node.transfer.following import LogBatch
from winnow.deadline import Deadline
from winnow.errors import DeadlineExceededError, UnavailableError

_BATCH_WRITES = 32
"""Maximum number of writes of a batch, which have some 8 MB at most."""
_COMMIT_SECONDS = 1.0
"""Seconds in which a write on the disk is served, unless its commit has failed."""


async def next_batch(shard: LiveShard, after: int) -> LogBatch:
    """Reads the next writes after a sequence number; raises ArtefactError if the log is damaged."""
    writes: Sequence[LoggedWrite] = ()
    is_trimmed = after < shard.trimmed
    if after < shard.sequence and not is_trimmed:
        writes = await asyncio.to_thread(shard.logged_after, after, _BATCH_WRITES)
    return LogBatch(
        log_id=shard.log_id,
        writes=writes,
        last=shard.sequence,
        is_trimmed=is_trimmed,
        takes_writes=shard.custody.takes_writes,
    )


async def check_copied_log(shard: LiveShard, sequence: int, link: bytes) -> None:
    """Raises UnavailableError if a copy of the log has a write whose commit has failed.

    The shard gives the number of such a write to the next write, so the copy would differ.

    Args:
        shard: the shard that was copied.
        sequence: number of the last write of the copy.
        link: the link of this write; empty if the copy has no log.

    """
    if not link:
        return
    await wait_for_write(shard, sequence, _COMMIT_SECONDS)  # it may not be served yet
    if not await asyncio.to_thread(shard.has_link, sequence, link):
        raise UnavailableError(
            f"the shard's log was copied with write {sequence}, which then failed: try again"
        )


async def wait_for_write(shard: LiveShard, sequence: int, seconds: float) -> None:
    """Returns once a write is served, or after `seconds`."""
    try:
        await shard.wait_for_write(sequence, Deadline.after(seconds))
    except DeadlineExceededError:
        return
