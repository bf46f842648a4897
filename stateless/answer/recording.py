"""Records the calls that one question makes to the shards: their start, duration and outcome.

Every question is recorded, at a cost of a few microseconds a call.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine
from dataclasses import replace
from typing import Any, TypeVar

from winnow.deadline import Clock
from winnow.domain.shard_call import NEVER, CallKind, CallOutcome, Interval, ReadTime, ShardCall
from winnow.searcher import Read, Retrieved

Result = TypeVar("Result")


class CallRecorder:
    """The calls of one question, timed from the start of the question."""

    def __init__(self, elapsed: float = 0.0, clock: Clock = time.perf_counter) -> None:
        """`elapsed`: seconds since the start of the question."""
        self._clock, self._started = clock, clock() - elapsed
        self._calls: list[ShardCall] = []

    def elapsed(self) -> float:
        """Seconds since the start of the question."""
        return self._clock() - self._started

    async def call(
        self, shard: int, kind: CallKind, send: Callable[[], Coroutine[Any, Any, Result]]
    ) -> Result:
        """Sends a call and records it; returns its result and raises its errors."""
        start, index = self.elapsed(), len(self._calls)
        self._calls.append(
            ShardCall(shard=shard, kind=kind, outcome=CallOutcome.ABANDONED, span=Interval(start))
        )
        try:
            result = await send()
        except asyncio.CancelledError:
            raise
        except BaseException:
            self._calls[index] = self._ended(self._calls[index], CallOutcome.FAILED)
            raise
        retrieved, reads = _node_times(result, start)
        ended = self._ended(self._calls[index], CallOutcome.ANSWERED)
        self._calls[index] = replace(ended, retrieved=retrieved, reads=reads)
        return result

    def calls(self) -> tuple[ShardCall, ...]:
        """All calls so far, in the order in which they were sent. An abandoned call lasts until
        now.
        """
        return tuple(
            self._ended(call, call.outcome) if call.outcome is CallOutcome.ABANDONED else call
            for call in self._calls
        )

    def _ended(self, call: ShardCall, outcome: CallOutcome) -> ShardCall:
        start = call.span.start
        return replace(call, outcome=outcome, span=Interval(start, self.elapsed() - start))


def _node_times(result: object, sent_at: float) -> tuple[Interval, tuple[ReadTime, ...]]:
    """When the content node retrieved, and when it read each passage."""
    if not isinstance(result, Retrieved | Read):
        return NEVER, ()
    retrieved = result.retrieved.later(sent_at) if result.retrieved.seconds else NEVER
    readings = result.readings if isinstance(result, Read) else ()
    reads = (ReadTime(each.passage.id, each.span.later(sent_at)) for each in readings)
    return retrieved, tuple(reads)
