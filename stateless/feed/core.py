"""The feed core: from passages and deletions to durable writes, whatever brought them.

Knows neither gRPC nor HTTP: both convert, call, and convert.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from typing import TypeVar

from winnow.deadline import Deadline
from winnow.domain.write import Deletion, FedPassage, FeedSummary, Put, Write, WriteResult
from winnow.inference.fair_threads import FairThreads
from winnow.stateless.feed.admission import FeedAdmission, work_of
from winnow.stateless.feed.encoding import EncodedPut
from winnow.stateless.feed.metrics import FeedMetrics
from winnow.stateless.feed.ordered_pipeline import OrderedPipeline, Turn
from winnow.stateless.feed.preparing import Prepared, Preparing
from winnow.stateless.feed.storing import Storing
from winnow.stateless.feed.tally import Tally
from winnow.stateless.feed.unchanged import IdsInHand
from winnow.stateless.feed.validation import validate_deletions, validate_puts
from winnow.telemetry.tracing.span import span

_RESERVE = 0.05
"""Seconds before the deadline at which storing is given up; at most a tenth."""
_AHEAD = 3
"""Messages of a stream in hand: one is stored, and two keep the threads that encode busy."""
Fed = TypeVar("Fed", FedPassage, Deletion)
Valid = TypeVar("Valid", Put, Deletion)
Prepare = Callable[[Sequence[Valid], Deadline, str, Collection[str]], Awaitable[list[Prepared]]]
Until = Callable[[], Deadline]
"""The deadline of a message that has just come."""


class FeedCore:
    """Encodes passages, and stores them where they belong."""

    def __init__(
        self,
        preparing: Preparing,
        storing: Storing,
        admission: FeedAdmission,
        metrics: FeedMetrics,
        aside: FairThreads,
    ) -> None:
        """`preparing` makes passages ready for `storing`.

        `aside`: looks at what was sent: a megabyte of metadata would hold up questions.
        """
        self._preparing, self._storing, self._aside = preparing, storing, aside
        self._admission, self._metrics = admission, metrics

    async def put(
        self, passages: Sequence[FedPassage], deadline: Deadline, client: str = ""
    ) -> list[WriteResult]:
        """Stores passages; returns when they are durable: one result for each, in their order.

        Args:
            passages: as the caller gave them; of several with one id the last one counts.
            deadline: of the caller.
            client: a key of the caller, for sharing fairly; empty if it has none.

        Raises:
            InvalidRequestError: a field breaks a rule; nothing was stored.
            OverloadedError: too much is in hand here or on a shard; says when to try again.
            NotWritableError: the index takes no writes as it is set up; says what to change.
            UnavailableError: a shard could not be reached. A part may have been stored.
            DeadlineExceededError: it took too long. A part may have been stored.

        """
        puts = await self._aside.run(client, partial(validate_puts, passages))
        deadline.check("the passages were looked at")
        with self._admission.enter(work_of(puts), client):
            return await self._store(await self._prepare(puts, deadline, client), deadline)

    async def delete(
        self, deletions: Sequence[Deletion], deadline: Deadline, client: str = ""
    ) -> list[WriteResult]:
        """Deletes passages; arguments, result and errors are those of `put`."""
        valid = await self._aside.run(client, partial(validate_deletions, deletions))
        deadline.check("the deletions were looked at")
        with self._admission.enter(work_of(valid), client):
            return await self._store(await _deletions(valid, deadline, client), deadline)

    async def put_stream(
        self, messages: AsyncIterator[Sequence[FedPassage]], until: Until, client: str = ""
    ) -> FeedSummary:
        """Stores passages until the stream ends, which is read no faster than that.

        Raises as `put` does, and what reading raises. What came before may have been stored.
        """
        return await self._stream(messages, validate_puts, self._prepare, until, client)

    async def delete_stream(
        self, messages: AsyncIterator[Sequence[Deletion]], until: Until, client: str = ""
    ) -> FeedSummary:
        """Deletes passages until the stream ends; raises as `put_stream` does."""
        return await self._stream(messages, validate_deletions, _deletions, until, client)

    async def _stream(
        self,
        messages: AsyncIterator[Sequence[Fed]],
        validate: Callable[[Sequence[Fed]], list[Valid]],
        prepare: Prepare[Valid],
        until: Until,
        client: str,
    ) -> FeedSummary:
        tally, entering, in_hand = Tally(), asyncio.Lock(), IdsInHand()

        async def store(message: Sequence[Fed], turn: Turn) -> list[WriteResult]:
            deadline = until()
            async with AsyncExitStack() as inside:
                # at once: messages are begun in their order
                written = inside.enter_context(in_hand.holding([each.id for each in message]))
                valid = await self._aside.run(client, partial(validate, message))
                async with entering:  # or a later one would have what an earlier one waits for
                    room = self._admission.entered(work_of(valid), client, deadline)
                    await inside.enter_async_context(room)
                prepared = await prepare(valid, deadline, client, written)
                await turn()
                return await self._store(prepared, deadline)

        await OrderedPipeline(store, tally.add, _AHEAD).run(messages)
        return tally.summary()

    async def _prepare(
        self, puts: Sequence[Put], deadline: Deadline, client: str, written: Collection[str] = ()
    ) -> list[Prepared]:
        with self._timed("encode"):
            return await self._preparing.prepare(puts, deadline, client, written)

    async def _store(self, prepared: Sequence[Prepared], deadline: Deadline) -> list[WriteResult]:
        deadline.check("the passages were stored")
        in_time = deadline.earlier(min(_RESERVE, deadline.left() / 10))
        encoded = [each for each in prepared if isinstance(each, EncodedPut)]
        with self._timed("store"):
            placed = await self._storing.store([each.write for each in encoded], in_time)
        stored = iter(
            WriteResult(each.write.id, outcome, position, each.truncated)
            for each, (outcome, position) in zip(encoded, placed, strict=True)
        )
        results = [each if isinstance(each, WriteResult) else next(stored) for each in prepared]
        self._metrics.written(each.outcome for each in results)
        return results

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        started = time.perf_counter()
        with span(stage):
            yield
        self._metrics.stage(stage, time.perf_counter() - started)


async def _deletions(
    valid: Sequence[Deletion], _deadline: Deadline, _client: str, _written: Collection[str] = ()
) -> list[Prepared]:
    """Nothing of them is encoded."""
    return [EncodedPut(Write(each.id, each.version), truncated=False) for each in valid]
