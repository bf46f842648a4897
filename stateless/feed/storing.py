"""Sends each write to its shard, and retries failed attempts.

This module knows the writer of each shard. It does not know how a writer sends a write.
"""

import asyncio
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from uuid import uuid4

from winnow.deadline import Deadline, Sleep
from winnow.domain.tenant import id_of_whole_tenant
from winnow.domain.write import Outcome, Position, Write, WriteAttempt, Written
from winnow.errors import (
    ArchiveUnreachableError,
    DeadlineExceededError,
    IndexIsCopyError,
    NotLoadedError,
    NotWritableError,
    OverloadedError,
    QuotaExceededError,
    RestoreFailedError,
    RestoringError,
    UnavailableError,
    WinnowError,
    WritesHeldError,
)
from winnow.quoting import many
from winnow.replicas.policy.retrying import retry_delay
from winnow.stateless.feed.metrics import FeedMetrics
from winnow.stateless.feed.writers import Writers
from winnow.stateless.tenants.storage import TenantStorage
from winnow.telemetry.tracing.span import SpanKind, span

_ERROR_ORDER = (
    NotWritableError,
    OverloadedError,
    IndexIsCopyError,
    ArchiveUnreachableError,
    RestoreFailedError,
    RestoringError,
    UnavailableError,
    DeadlineExceededError,
)
"""If several shards fail, the error of the first kind in this order is raised."""
_REFUSED = (NotLoadedError, IndexIsCopyError, WritesHeldError, RestoreFailedError)
"""Kinds of UnavailableError by which a node has refused the writes."""
_MAX_RESTORES = 6
"""Attempts after which a failed restore of a shard is reported, so that the caller learns the
reason and may wait. They take two seconds, and outlast a short fault of the archive.
"""
_MAX_ATTEMPTS = 256
"""Attempts of a call that have different numbers. All later ones have the same number."""
StoredWrite = tuple[Outcome, Position]
"""The outcome of a write, and its position in the log of its shard."""
RecordWrite = Callable[[int, int, str], None]
"""Records a durable write: `record_write(shard, sequence, log_id)`."""


class WriteRouter:
    """Stores each write durably in the shard that its id belongs to."""

    def __init__(
        self,
        writers: Writers,
        metrics: FeedMetrics,
        sleep: Sleep = asyncio.sleep,
        record_write: RecordWrite = lambda _shard, _sequence, _log_id: None,
        *,
        storage: TenantStorage | None = None,
    ) -> None:
        """`record_write` gets the last durable write of a shard, before `store` returns.

        `storage` adds the limits of tenants to writes; None without limits.
        """
        self._storage = storage
        self._writers, self._metrics = writers, metrics
        self._sleep, self._record_write = sleep, record_write

    async def store(self, writes: Sequence[Write], deadline: Deadline) -> list[StoredWrite]:
        """Stores writes, which each shard stores in their order. Returns when all are durable.

        Raises:
            WinnowError: at least one write was not stored before the deadline. Others may have been
                stored. The caller may send all of them again.

        """
        results = _Results()
        try:
            await self._store(writes, range(len(writes)), deadline, results)
        finally:
            await self._writers.close_unused()
        _raise_if_failed(results, len(writes))
        return [results.stored[index] for index in range(len(writes))]

    async def delete_tenant(self, tenant: str, deadline: Deadline) -> list[StoredWrite]:
        """Deletes all passages of a tenant in each shard that may hold some. Raises as `store`."""
        write, results = Write(id_of_whole_tenant(tenant)), _Results()
        pending = self._writers.partition.shards_of_tenant(tenant)
        stored: list[StoredWrite] = []
        try:
            while pending:
                calls = (self.store_in_shard(shard, [write], deadline) for shard in pending)
                called, pending = pending, []
                for shard, written in zip(called, await asyncio.gather(*calls), strict=True):
                    if isinstance(written, _WasSplitError):
                        pending += self._writers.partition.parts_of(shard)
                    elif isinstance(written, WinnowError):
                        results.add_failure(shard, written, 1)
                    else:
                        stored += [
                            (each.outcome, Position(shard, each.sequence)) for each in written
                        ]
        finally:
            if self._storage is not None:
                self._storage.forget(tenant)
            await self._writers.close_unused()
        _raise_if_failed(results, len(stored) + len(results.failures))
        return stored

    async def _store(
        self,
        writes: Sequence[Write],
        indices: Iterable[int],
        deadline: Deadline,
        results: "_Results",
    ) -> None:
        """Stores the writes with these indices, each in its shard."""
        partition, by_shard = self._writers.partition, defaultdict[int, list[int]](list)
        for index in indices:
            by_shard[partition.shard_of(writes[index].id)].append(index)

        async def store(shard: int, own: Sequence[int]) -> None:
            own_writes: Sequence[Write] = [writes[each] for each in own]
            if self._storage is not None:
                own_writes = self._storage.limited(own_writes, shard)
            written = await self.store_in_shard(shard, own_writes, deadline)
            if isinstance(written, _WasSplitError):
                await self._store(writes, own, deadline, results)
            elif isinstance(written, WinnowError):
                if self._storage is not None and isinstance(written, QuotaExceededError):
                    written = self._storage.refusal(own_writes, written)
                results.add_failure(shard, written, len(own))
            else:
                if self._storage is not None:
                    self._storage.record(shard, own_writes, written)
                for index, each in zip(own, written, strict=True):
                    results.stored[index] = each.outcome, Position(shard, each.sequence)

        async with asyncio.TaskGroup() as group:
            for shard, own in by_shard.items():
                group.create_task(store(shard, own))

    async def store_in_shard(
        self,
        shard: int,
        writes: Sequence[Write],
        deadline: Deadline,
        outer: WriteAttempt | None = None,
    ) -> list[Written] | WinnowError:
        """Stores writes that all belong to one shard.

        `outer` is the attempt of another front that has sent the writes to this one, if any.

        Returns the error of a failed write instead of raising it, because raising would cancel the
        writes to other shards. If the shard was split meanwhile, returns an UnavailableError; then
        the halves take the writes.

        An attempt may still be on its way when its call has failed. Its node stores it until
        `deadline` at the latest, so an error is returned only then.
        """
        first = outer or WriteAttempt(uuid4().hex)
        until = deadline.before_reply()
        attempt = 0
        may_arrive = False
        tried: list[str] = []
        while True:
            name, attributes = ("retry" if attempt else "write"), {"winnow.shard": shard}
            is_sent = False
            try:
                with span(name, attributes, SpanKind.CLIENT):
                    address = self._writers.address(shard, tried)
                    tried.append(address)
                    writer = self._writers.writer(address, shard)
                    is_sent = True
                    written = await writer.write(writes, until, _numbered(first, attempt))
            except WinnowError as error:
                attempt += 1
                may_arrive = may_arrive or (is_sent and _may_arrive(error))
                wait = _retry_wait(error, attempt, until)
                if wait is None:
                    if may_arrive:
                        await self._sleep(max(until.left(), 0.0))
                    return error
            else:
                self._writers.record_success(address, shard)
                last = max(written, key=lambda each: each.sequence)
                self._record_write(shard, last.sequence, last.log_id)
                return written
            self._metrics.retries.labels(str(shard)).inc()
            await self._sleep(wait)
            if shard not in self._writers.partition:
                return _WasSplitError(f"shard {shard} was split: its halves take the writes")


def _may_arrive(error: WinnowError) -> bool:
    """Whether an attempt may still be stored after its error, because no node has refused it."""
    return isinstance(error, UnavailableError) and not isinstance(error, _REFUSED)


def _numbered(first: WriteAttempt, attempt: int) -> WriteAttempt:
    """Returns the attempt with a number, within the attempt of another front if there is one."""
    number = first.number * _MAX_ATTEMPTS + min(attempt, _MAX_ATTEMPTS - 1)
    return WriteAttempt(first.call, number)


class _WasSplitError(UnavailableError):
    """The shard was split after its writes had been sent."""


@dataclass(slots=True)
class _Results:
    """The results of one call of `WriteRouter.store`."""

    stored: dict[int, StoredWrite] = field(default_factory=dict)
    """The outcome of each stored write, by its index in the call."""
    failures: dict[int, WinnowError] = field(default_factory=dict)
    """The error of each failed shard."""
    uncertain: int = 0
    """Number of writes that may not be stored."""

    def add_failure(self, shard: int, error: WinnowError, writes: int) -> None:
        """Adds the error of a shard, and the number of its writes that may not be stored."""
        self.failures[shard] = error
        self.uncertain += writes


def _retry_wait(error: WinnowError, attempt: int, deadline: Deadline) -> float | None:
    """Seconds to wait before the next attempt; None if the error must not be retried."""
    if isinstance(error, OverloadedError):
        return retry_delay(attempt, deadline.left(), error.retry_after)
    if isinstance(error, NotLoadedError | IndexIsCopyError):
        return None
    if isinstance(error, RestoreFailedError) and attempt >= _MAX_RESTORES:
        return None
    if isinstance(error, UnavailableError):
        return retry_delay(attempt, deadline.left())
    return None


def _raise_if_failed(results: _Results, total: int) -> None:
    """Raises the error of one failed shard, with the number of writes that may not be stored."""
    for error in results.failures.values():
        if isinstance(error, QuotaExceededError):  # says what to do, and a retry does not help
            raise error
    for kind in (*_ERROR_ORDER, WinnowError):
        for shard, error in sorted(results.failures.items()):
            if isinstance(error, kind):
                uncertain = f"{results.uncertain} of {many(total, 'write')} may not be stored"
                lead = f"{uncertain}: shard {shard}: "
                reworded = _with_message(error, f"{lead}{error}")
                raise reworded.with_public(f"{lead}{error.public or error}") from error


def _with_message(error: WinnowError, message: str) -> WinnowError:
    """Returns an error of the same class with another message."""
    if isinstance(error, OverloadedError):
        return OverloadedError(message, error.retry_after)
    return next((kind(message) for kind in _ERROR_ORDER if isinstance(error, kind)), error)
