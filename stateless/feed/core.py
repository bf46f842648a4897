"""The feed core: from passages and deletions to durable writes.

The core knows neither gRPC nor HTTP. Both convert requests and results. One thread validates and
tokenises passages; the threads of the encoder encode them.
"""

import asyncio
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Collection,
    Iterable,
    Iterator,
    Sequence,
)
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from typing import TypeVar

from winnow.deadline import Deadline
from winnow.domain.tenant import own_id, stored_id
from winnow.domain.write import (
    Deletion,
    FedPassage,
    FeedSummary,
    Position,
    Write,
    WriteResult,
)
from winnow.inference.fair_threads import FairThreads
from winnow.stateless.feed.admission import FeedAdmission, work_of
from winnow.stateless.feed.encoding import FeedEncoder, PreparedPut
from winnow.stateless.feed.metrics import FeedMetrics
from winnow.stateless.feed.ordered_pipeline import AwaitTurn, ordered_pipeline
from winnow.stateless.feed.storing import StoredWrite, WriteRouter
from winnow.stateless.feed.stream import IdsInFlight, StreamTally
from winnow.stateless.feed.unchanged import UnchangedPuts
from winnow.stateless.feed.validation import validate_deletions
from winnow.telemetry.tracing.span import span

_REPLY_RESERVE = 0.05
"""Seconds before the deadline at which storing is given up, but at most a tenth of the time left.
"""
_MAX_MESSAGES_IN_FLIGHT = 3
"""Maximum number of messages in flight per stream: one is stored while two are encoded."""
Fed = TypeVar("Fed", FedPassage, Deletion)
Ready = TypeVar("Ready", PreparedPut, Deletion)
Store = Callable[
    [Sequence[Ready], Deadline, str, Collection[str], AwaitTurn], Awaitable[list[WriteResult]]
]
NewDeadline = Callable[[], Deadline]
"""Returns the deadline of a message that has just arrived."""


async def _no_wait() -> None:
    """The `AwaitTurn` of a request that is not part of a stream: returns immediately."""


class FeedCore:
    """Encodes and stores passages in their shards, and deletes passages."""

    def __init__(
        self,
        *,
        encoder: FeedEncoder,
        unchanged: UnchangedPuts,
        router: WriteRouter,
        admission: FeedAdmission,
        metrics: FeedMetrics,
        prepare_thread: FairThreads,
        token_vectors: Callable[[], str] = lambda: "",
    ) -> None:
        """`prepare_thread` converts, validates and tokenises requests in their order.

        In the event loop, a megabyte of metadata would block questions for too long.
        `token_vectors` returns the fingerprint of the token vectors that the shards use.
        """
        self._token_vectors = token_vectors
        self._encoder, self._unchanged, self._router = encoder, unchanged, router
        self._admission, self._metrics, self._thread = admission, metrics, prepare_thread

    async def put(
        self, passages: Sequence[FedPassage], deadline: Deadline, client: str = ""
    ) -> list[WriteResult]:
        """Stores passages. Returns when all are durable, with one result for each, in their order.

        Args:
            passages: passages of the caller. Of several passages with one id the last counts.
            deadline: deadline of the caller.
            client: key of the caller, for fair sharing; may be empty.

        Raises:
            InvalidRequestError: a field breaks a rule; nothing was stored.
            OverloadedError: the front or a shard is overloaded; the error says when to try again.
            NotWritableError: the index is not set up for writes; the error says what to change.
            UnavailableError: a shard could not be reached. Some passages may have been stored.
            DeadlineExceededError: the deadline passed. Some passages may have been stored.

        """
        puts = await self._thread.run(client, partial(self._encoder.prepare, passages))
        deadline.check("the passages were validated")
        with self._admission.enter(work_of(puts), client):
            return await self._put(puts, deadline, client)

    async def delete(
        self, deletions: Sequence[Deletion], deadline: Deadline, client: str = ""
    ) -> list[WriteResult]:
        """Deletes passages. The other arguments, the results and the errors are those of `put`."""
        valid = await self._thread.run(client, partial(validate_deletions, deletions))
        deadline.check("the deletions were validated")
        with self._admission.enter(work_of(valid), client):
            return await self._delete(valid, deadline)

    async def delete_tenant(
        self, tenant: str, deadline: Deadline, client: str = ""
    ) -> list[Position]:
        """Deletes all passages of a tenant; returns the position of this in each of its shards.

        It is safe to repeat a failed call. Passages that are stored meanwhile may stay. The errors
        are those of `put`.
        """
        with self._admission.enter(1, client):
            results = await self._router.delete_tenant(tenant, self._store_deadline(deadline))
        return [position for _, position in results]

    async def put_stream(
        self,
        messages: AsyncIterator[Sequence[FedPassage]],
        new_deadline: NewDeadline,
        client: str = "",
    ) -> FeedSummary:
        """Stores passages until the stream ends. Reads the stream no faster than it can store.

        Raises the errors of `put` and of the stream. Earlier messages may have been stored.
        """
        return await self._stream(messages, self._encoder.prepare, self._put, new_deadline, client)

    async def delete_stream(
        self,
        messages: AsyncIterator[Sequence[Deletion]],
        new_deadline: NewDeadline,
        client: str = "",
    ) -> FeedSummary:
        """Deletes passages until the stream ends. The errors are those of `put_stream`."""
        return await self._stream(messages, validate_deletions, self._delete, new_deadline, client)

    async def _stream(
        self,
        messages: AsyncIterator[Sequence[Fed]],
        prepare: Callable[[Sequence[Fed]], list[Ready]],
        store: Store[Ready],
        new_deadline: NewDeadline,
        client: str,
    ) -> FeedSummary:
        tally, admitting, ids_in_flight = StreamTally(), asyncio.Lock(), IdsInFlight()

        async def process(message: Sequence[Fed], await_turn: AwaitTurn) -> list[WriteResult]:
            deadline = new_deadline()
            async with AsyncExitStack() as stack:
                # a single thread, so that the messages of a stream are prepared in their order
                ready = await self._thread.run(client, partial(prepare, message))
                earlier_ids = stack.enter_context(ids_in_flight.track([each.id for each in ready]))
                async with admitting:  # in order: a later message must not take the room first
                    room = self._admission.wait_and_enter(work_of(ready), client, deadline)
                    await stack.enter_async_context(room)
                return await store(ready, deadline, client, earlier_ids, await_turn)

        await ordered_pipeline(messages, process, tally.add, _MAX_MESSAGES_IN_FLIGHT)
        return tally.summary()

    async def _put(
        self,
        puts: Sequence[PreparedPut],
        deadline: Deadline,
        client: str,
        earlier_ids: Collection[str] = (),
        await_turn: AwaitTurn = _no_wait,
    ) -> list[WriteResult]:
        """Encodes and stores the passages that change something; see `UnchangedPuts.find`."""
        with self._timed("encode"):
            digests = [each.digest for each in puts]
            unchanged = await self._unchanged.find(digests, deadline, earlier_ids)
            new = [put for put, result in zip(puts, unchanged, strict=True) if result is None]
            writes = await self._encoder.encode(new, client, self._token_vectors())
        await await_turn()
        stored = iter(await self._store(writes, deadline))
        results = [result or next(stored) for result in unchanged]
        return self._count(
            WriteResult(own_id(put.id), *result, put.truncated)
            for put, result in zip(puts, results, strict=True)
        )

    async def _delete(
        self,
        deletions: Sequence[Deletion],
        deadline: Deadline,
        _client: str = "",
        _earlier_ids: Collection[str] = (),
        await_turn: AwaitTurn = _no_wait,
    ) -> list[WriteResult]:
        await await_turn()
        writes = [Write(stored_id(each.tenant, each.id), each.version) for each in deletions]
        results = await self._store(writes, deadline)
        return self._count(
            WriteResult(deletion.id, *result)
            for deletion, result in zip(deletions, results, strict=True)
        )

    async def _store(self, writes: Sequence[Write], deadline: Deadline) -> list[StoredWrite]:
        deadline.check("the passages were stored")
        with self._timed("store"):
            return await self._router.store(writes, self._store_deadline(deadline))

    @staticmethod
    def _store_deadline(deadline: Deadline) -> Deadline:
        return deadline.earlier(min(_REPLY_RESERVE, deadline.left() / 10))

    def _count(self, results: Iterable[WriteResult]) -> list[WriteResult]:
        counted = list(results)
        self._metrics.count_writes(each.outcome for each in counted)
        return counted

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        started = time.perf_counter()
        with span(stage):
            yield
        self._metrics.observe_stage(stage, time.perf_counter() - started)
