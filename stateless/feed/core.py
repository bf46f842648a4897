"""The feed core: from passages and deletions to durable writes.

Knows neither gRPC nor HTTP: both convert, call, and convert. A passage changes threads twice here.
One thread validates and tokenises it, and another one encodes it.
"""

import asyncio
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import AsyncExitStack, contextmanager
from functools import partial
from typing import TypeVar

from winnow.deadline import Deadline
from winnow.domain.write import Deletion, FedPassage, FeedSummary, Write, WriteResult
from winnow.inference.fair_threads import FairThreads
from winnow.stateless.feed.admission import FeedAdmission, work_of
from winnow.stateless.feed.encoding import FeedEncoder, PreparedPut
from winnow.stateless.feed.metrics import FeedMetrics
from winnow.stateless.feed.ordered_pipeline import Turn, ordered_pipeline
from winnow.stateless.feed.storing import Placed, Storing
from winnow.stateless.feed.stream import IdsInHand, StreamTally
from winnow.stateless.feed.unchanged import UnchangedPuts
from winnow.stateless.feed.validation import validate_deletions
from winnow.telemetry.tracing.span import span

_RESERVE = 0.05
"""Seconds before the deadline at which storing is given up; at most a tenth."""
_AHEAD = 3
"""Messages of a stream in hand: one is stored, and two keep the threads that encode busy."""
Fed = TypeVar("Fed", FedPassage, Deletion)
Ready = TypeVar("Ready", PreparedPut, Deletion)
Store = Callable[
    [Sequence[Ready], Deadline, str, Collection[str], Turn], Awaitable[list[WriteResult]]
]
NewDeadline = Callable[[], Deadline]
"""The deadline of a message that has just arrived."""


async def _at_once() -> None:
    """The turn of a request: nothing comes before it."""


class FeedCore:
    """Encodes passages, and stores them in the shards that they belong to."""

    def __init__(
        self,
        *,
        encoder: FeedEncoder,
        unchanged: UnchangedPuts,
        storing: Storing,
        admission: FeedAdmission,
        metrics: FeedMetrics,
        aside: FairThreads,
    ) -> None:
        """`aside` is one thread. It converts, validates and tokenises requests in their order: a
        megabyte of metadata would hold up questions on the event loop.
        """
        self._encoder, self._unchanged, self._storing = encoder, unchanged, storing
        self._admission, self._metrics, self._aside = admission, metrics, aside

    async def put(
        self, passages: Sequence[FedPassage], deadline: Deadline, client: str = ""
    ) -> list[WriteResult]:
        """Stores passages; returns when they are durable: one result for each, in their order.

        Args:
            passages: as the caller gave them, read in a thread. Of several with one id the last
                one counts.
            deadline: the caller's deadline.
            client: a key of the caller, for sharing fairly; empty if it has none.

        Raises:
            InvalidRequestError: a field breaks a rule; nothing was stored.
            OverloadedError: too much is in hand here or on a shard; says when to try again.
            NotWritableError: the index takes no writes as it is set up; says what to change.
            UnavailableError: a shard could not be reached. A part may have been stored.
            DeadlineExceededError: it took too long. A part may have been stored.

        """
        puts = await self._aside.run(client, partial(self._encoder.prepare, passages))
        deadline.check("the passages were looked at")
        with self._admission.enter(work_of(puts), client):
            return await self._put(puts, deadline, client)

    async def delete(
        self, deletions: Sequence[Deletion], deadline: Deadline, client: str = ""
    ) -> list[WriteResult]:
        """Deletes passages; arguments, result and errors are those of `put`."""
        valid = await self._aside.run(client, partial(validate_deletions, deletions))
        deadline.check("the deletions were looked at")
        with self._admission.enter(work_of(valid), client):
            return await self._delete(valid, deadline)

    async def put_stream(
        self,
        messages: AsyncIterator[Sequence[FedPassage]],
        new_deadline: NewDeadline,
        client: str = "",
    ) -> FeedSummary:
        """Stores passages until the stream ends, which is read no faster than that.

        Raises as `put` does, and the errors of reading. Earlier messages may have been stored.
        """
        return await self._stream(messages, self._encoder.prepare, self._put, new_deadline, client)

    async def delete_stream(
        self,
        messages: AsyncIterator[Sequence[Deletion]],
        new_deadline: NewDeadline,
        client: str = "",
    ) -> FeedSummary:
        """Deletes passages until the stream ends; raises as `put_stream` does."""
        return await self._stream(messages, validate_deletions, self._delete, new_deadline, client)

    async def _stream(
        self,
        messages: AsyncIterator[Sequence[Fed]],
        prepare: Callable[[Sequence[Fed]], list[Ready]],
        store: Store[Ready],
        new_deadline: NewDeadline,
        client: str,
    ) -> FeedSummary:
        tally, entering, in_hand = StreamTally(), asyncio.Lock(), IdsInHand()

        async def work(message: Sequence[Fed], turn: Turn) -> list[WriteResult]:
            deadline = new_deadline()
            async with AsyncExitStack() as inside:
                # one thread takes the messages of a stream in their order
                ready = await self._aside.run(client, partial(prepare, message))
                written = inside.enter_context(in_hand.holding([each.id for each in ready]))
                async with entering:  # or a later one would take the room of an earlier one
                    room = self._admission.wait_and_enter(work_of(ready), client, deadline)
                    await inside.enter_async_context(room)
                return await store(ready, deadline, client, written, turn)

        await ordered_pipeline(messages, work, tally.add, _AHEAD)
        return tally.summary()

    async def _put(
        self,
        puts: Sequence[PreparedPut],
        deadline: Deadline,
        client: str,
        written: Collection[str] = (),
        turn: Turn = _at_once,
    ) -> list[WriteResult]:
        """Encodes and stores the passages that shards lack; `written` as of `UnchangedPuts`."""
        with self._timed("encode"):
            known = await self._unchanged.find([each.digest for each in puts], deadline, written)
            new = [each for each, placed in zip(puts, known, strict=True) if placed is None]
            writes = await self._encoder.encode(new, client)
        await turn()
        stored = iter(await self._store(writes, deadline))
        placed = [each or next(stored) for each in known]
        return self._results(
            WriteResult(put.id, *each, put.truncated)
            for put, each in zip(puts, placed, strict=True)
        )

    async def _delete(
        self,
        deletions: Sequence[Deletion],
        deadline: Deadline,
        _client: str = "",
        _written: Collection[str] = (),
        turn: Turn = _at_once,
    ) -> list[WriteResult]:
        await turn()
        placed = await self._store([Write(each.id, each.version) for each in deletions], deadline)
        return self._results(
            WriteResult(deletion.id, *each)
            for deletion, each in zip(deletions, placed, strict=True)
        )

    async def _store(self, writes: Sequence[Write], deadline: Deadline) -> list[Placed]:
        deadline.check("the passages were stored")
        in_time = deadline.earlier(min(_RESERVE, deadline.left() / 10))
        with self._timed("store"):
            return await self._storing.store(writes, in_time)

    def _results(self, results: Iterator[WriteResult]) -> list[WriteResult]:
        found = list(results)
        self._metrics.written(each.outcome for each in found)
        return found

    @contextmanager
    def _timed(self, stage: str) -> Iterator[None]:
        started = time.perf_counter()
        with span(stage):
            yield
        self._metrics.stage(stage, time.perf_counter() - started)
