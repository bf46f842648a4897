"""Stores writes in their shards, or raises an error if one was not stored.

Knows writers by shard and when to send a write again; does not know how a writer works.
"""

import asyncio
from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence

from winnow.deadline import Deadline
from winnow.domain.shard import shard_of
from winnow.domain.write import Outcome, Position, Write, Written
from winnow.errors import (
    DeadlineExceededError,
    NotLoadedError,
    NotWritableError,
    OverloadedError,
    UnavailableError,
    WinnowError,
)
from winnow.quoting import many
from winnow.replicas.policy.retrying import retry_delay
from winnow.stateless.feed.metrics import FeedMetrics
from winnow.stateless.feed.writers import Writers
from winnow.telemetry.tracing.span import SpanKind, span

_WORST = (NotWritableError, OverloadedError, UnavailableError, DeadlineExceededError)
"""The order in which the error of several failed shards is chosen: the first kind is raised."""
Placed = tuple[Outcome, Position]
Rest = Callable[[float], Awaitable[None]]
RecordWrite = Callable[[int, int, str], None]
"""Gets a shard, the number of its last write, and the name of the log that counts it."""


class Storing:
    """Stores writes durably, each in the shard that its id belongs to."""

    def __init__(
        self,
        writers: Writers,
        metrics: FeedMetrics,
        rest: Rest = asyncio.sleep,
        record_write: RecordWrite = lambda _shard, _sequence, _log_id: None,
    ) -> None:
        """`rest` waits for a number of seconds. `record_write` is called as soon as the last write
        of a shard is durable, before the caller gets its result.
        """
        self._writers, self._metrics = writers, metrics
        self._rest, self._record_write = rest, record_write

    async def store(self, writes: Sequence[Write], deadline: Deadline) -> list[Placed]:
        """Stores writes, in each shard in their order. Returns when all are durable.

        Raises:
            WinnowError: at least one write was not stored by the deadline. Others may have been
                stored, and all may be sent again.

        """
        shards = self._writers.shards
        parts: defaultdict[int, list[int]] = defaultdict(list)
        for place, write in enumerate(writes):
            parts[shard_of(write.id, shards)].append(place)
        try:
            async with asyncio.TaskGroup() as group:
                tasks = {
                    shard: group.create_task(
                        self._attempt(shard, [writes[place] for place in places], deadline)
                    )
                    for shard, places in parts.items()
                }
        finally:
            await self._writers.tidy()
        _expect_all({shard: task.result() for shard, task in tasks.items()}, len(writes), parts)
        found: dict[int, Placed] = {}
        for shard, places in parts.items():
            written = tasks[shard].result()
            assert not isinstance(written, WinnowError)
            for place, each in zip(places, written, strict=True):
                found[place] = each.outcome, Position(shard, each.sequence)
        return [found[place] for place in range(len(writes))]

    async def _attempt(
        self, shard: int, writes: Sequence[Write], deadline: Deadline
    ) -> list[Written] | WinnowError:
        """The outcomes of one shard's writes. A failure is returned, so that others go on."""
        attempt = 0
        tried: list[str] = []
        while True:
            name, about = ("retry" if attempt else "write"), {"winnow.shard": shard}
            try:
                with span(name, about, SpanKind.CLIENT):
                    address = self._writers.address(shard, tried)
                    tried.append(address)
                    writer = self._writers.writer(address, shard)
                    written = await writer.write(writes, deadline)
            except WinnowError as error:
                attempt += 1
                wait = _pause(error, attempt, deadline)
                if wait is None:
                    return error
            else:
                self._writers.worked(address, shard)
                last = max(written, key=lambda each: each.sequence)
                self._record_write(shard, last.sequence, last.log_id)
                return written
            self._metrics.retries.labels(str(shard)).inc()
            await self._rest(wait)


def _pause(error: WinnowError, attempt: int, deadline: Deadline) -> float | None:
    """Seconds before the next attempt; None where none would help, or there is no time."""
    if isinstance(error, OverloadedError):
        return retry_delay(attempt, deadline.left(), error.retry_after)
    if isinstance(error, UnavailableError) and not isinstance(error, NotLoadedError):
        return retry_delay(attempt, deadline.left())
    return None


def _expect_all(
    results: dict[int, list[Written] | WinnowError], total: int, parts: dict[int, list[int]]
) -> None:
    """Raises the worst error of the failed shards, with the number of writes they lost."""
    failed = {shard: each for shard, each in results.items() if isinstance(each, WinnowError)}
    if not failed:
        return
    for kind in (*_WORST, WinnowError):
        for shard, error in sorted(failed.items()):
            if isinstance(error, kind):
                lost = sum(len(parts[each]) for each in failed)
                lead = f"{lost} of {many(total, 'write')} may not be stored: shard {shard}: "
                again = _said_again(error, f"{lead}{error}")
                raise again.with_public(f"{lead}{error.public or error}") from error


def _said_again(error: WinnowError, message: str) -> WinnowError:
    """An error of the same kind with another message."""
    if isinstance(error, OverloadedError):
        return OverloadedError(message, error.retry_after)
    return next((kind(message) for kind in _WORST if isinstance(error, kind)), error)
