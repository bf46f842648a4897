"""The feed core: from passages and deletions to durable writes, whatever brought them.

Knows neither gRPC nor HTTP: both convert, call, and convert.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from typing import TypeVar

from stateless.feed.admission import FeedAdmission, work_of
from stateless.feed.encoding import EncodedPut, FeedEncoder
from stateless.feed.lane import Lane, Turn
from stateless.feed.metrics import FeedMetrics
from stateless.feed.storing import Storing
from stateless.feed.tally import Tally
from stateless.feed.validation import validate_deletions, validate_puts
from winnow.deadline import Deadline
from winnow.domain.feeding import Deletion, FedPassage, FeedSummary, Put, WriteResult
from winnow.domain.write import Write
from winnow.inference.fair_threads import FairThreads
from winnow.telemetry.tracing.span import span

_RESERVE = 0.05
"""Seconds before the deadline at which storing is given up; at most a tenth."""
_AHEAD = 3
"""Messages of a stream in hand: one is stored, and two keep the threads that encode busy."""
Fed = TypeVar("Fed", FedPassage, Deletion)
Valid = TypeVar("Valid", Put, Deletion)
Encoded = Awaitable[list[EncodedPut]]
Until = Callable[[], Deadline]
"""The deadline of a message that has just come."""


class FeedCore:
    """Encodes passages, and stores them where they belong."""

    def __init__(
        self,
        encoder: FeedEncoder,
        storing: Storing,
        admission: FeedAdmission,
        metrics: FeedMetrics,
        aside: FairThreads,
    ) -> None:
        """`aside`: looks at what was sent: a megabyte of metadata would hold up questions."""
        self._encoder, self._storing, self._aside = encoder, storing, aside
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
            return await self._store(await self._encode(client, puts), deadline)

    async def delete(
        self, deletions: Sequence[Deletion], deadline: Deadline, client: str = ""
    ) -> list[WriteResult]:
        """Deletes passages; arguments, result and errors are those of `put`."""
        valid = await self._aside.run(client, partial(validate_deletions, deletions))
        deadline.check("the deletions were looked at")
        with self._admission.enter(work_of(valid), client):
            return await self._store(await _deletions(valid), deadline)

    async def put_stream(
        self, messages: AsyncIterator[Sequence[FedPassage]], until: Until, client: str = ""
    ) -> FeedSummary:
        """Stores passages until the stream ends, which is read no faster than that.

        Raises as `put` does, and what reading raises. What came before may have been stored.
        """
        encode = partial(self._encode, client)
        return await self._stream(messages, validate_puts, encode, until, client)

    async def delete_stream(
        self, messages: AsyncIterator[Sequence[Deletion]], until: Until, client: str = ""
    ) -> FeedSummary:
        """Deletes passages until the stream ends; raises as `put_stream` does."""
        return await self._stream(messages, validate_deletions, _deletions, until, client)

    async def _stream(
        self,
        messages: AsyncIterator[Sequence[Fed]],
        validate: Callable[[Sequence[Fed]], list[Valid]],
        encode: Callable[[Sequence[Valid]], Encoded],
        until: Until,
        client: str,
    ) -> FeedSummary:
        tally, entering = Tally(), asyncio.Lock()

        async def store(message: Sequence[Fed], turn: Turn) -> list[WriteResult]:
            deadline = until()
            valid = await self._aside.run(client, partial(validate, message))
            async with AsyncExitStack() as inside:
                async with entering:  # or a later one would have what an earlier one waits for
                    room = self._admission.entered(work_of(valid), client, deadline)
                    await inside.enter_async_context(room)
                encoded = await encode(valid)
                await turn()
                return await self._store(encoded, deadline)

        await Lane(store, tally.add, _AHEAD).run(messages)
        return tally.summary()

    async def _encode(self, client: str, puts: Sequence[Put]) -> list[EncodedPut]:
        with self._timed("encode"):
            return await self._encoder.encode(puts, client)

    async def _store(self, encoded: Sequence[EncodedPut], deadline: Deadline) -> list[WriteResult]:
        deadline.check("the passages were stored")
        in_time = deadline.earlier(min(_RESERVE, deadline.left() / 10))
        with self._timed("store"):
            placed = await self._storing.store([each.write for each in encoded], in_time)
        self._metrics.written(outcome for outcome, _ in placed)
        return [
            WriteResult(each.write.id, outcome, position, each.truncated)
            for each, (outcome, position) in zip(encoded, placed, strict=True)
        ]

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        started = time.perf_counter()
        with span(stage):
            yield
        self._metrics.stage(stage, time.perf_counter() - started)


async def _deletions(valid: Sequence[Deletion]) -> list[EncodedPut]:
    """Nothing of them is encoded."""
    return [EncodedPut(Write(each.id, each.version), truncated=False) for each in valid]
