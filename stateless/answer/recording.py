"""Records the calls that one question makes to the shards: when each was sent, and how it ended.

Knows a clock and what shards reply; does not know why a call is made. Every question is recorded,
at a cost of a few microseconds a call.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from winnow.deadline import Clock
from winnow.domain.shard_call import NEVER, CallKind, CallOutcome, Interval, ReadTime, ShardCall
from winnow.searcher import Read, Retrieved

Result = TypeVar("Result")


class Recording:
    """The calls of one question."""

    def __init__(self, spent: float = 0.0, clock: Clock = time.perf_counter) -> None:
        """The question began `spent` seconds ago."""
        self._clock, self._began = clock, clock() - spent
        self._calls: list[ShardCall] = []

    def now(self) -> float:
        """Seconds since the question began."""
        return self._clock() - self._began

    async def call(
        self, shard: int, kind: CallKind, send: Callable[[], Coroutine[Any, Any, Result]]
    ) -> Result:
        """Sends a call; returns its result and raises its errors."""
        start, place = self.now(), len(self._calls)
        self._calls.append(
            ShardCall(shard=shard, kind=kind, outcome=CallOutcome.ABANDONED, span=Interval(start))
        )
        try:
            result = await send()
        except asyncio.CancelledError:
            raise
        except BaseException:
            self._calls[place] = self._ended(place, CallOutcome.FAILED)
            raise
        self._calls[place] = self._ended(place, CallOutcome.ANSWERED, result)
        return result

    def calls(self) -> tuple[ShardCall, ...]:
        """All calls so far, in the order in which they were sent. A call that did not end lasts
        until now.
        """
        return tuple(
            self._ended(place, CallOutcome.ABANDONED)
            if call.outcome is CallOutcome.ABANDONED
            else call
            for place, call in enumerate(self._calls)
        )

    def _ended(self, place: int, outcome: CallOutcome, result: object = None) -> ShardCall:
        sent = self._calls[place]
        start = sent.span.start
        span = Interval(start, self.now() - start)
        retrieved, reads = _work(result, start)
        return ShardCall(
            shard=sent.shard,
            kind=sent.kind,
            outcome=outcome,
            span=span,
            retrieved=retrieved,
            reads=reads,
        )


def _work(result: object, start: float) -> tuple[Interval, tuple[ReadTime, ...]]:
    """The work of a content node for a call that was sent at `start`."""
    if not isinstance(result, Retrieved | Read):
        return NEVER, ()
    retrieved = result.retrieved.later(start) if result.retrieved.seconds else NEVER
    readings = result.readings if isinstance(result, Read) else ()
    reads = (ReadTime(each.passage.id, each.span.later(start)) for each in readings)
    return retrieved, tuple(reads)
