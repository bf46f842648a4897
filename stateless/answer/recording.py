"""Records the calls of one question to the shards: their start, duration and outcome.

Every question is recorded. This costs a few microseconds for each call.
"""

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, TypeVar

from winnow.deadline import Clock
from winnow.domain.shard_call import NEVER, CallKind, CallOutcome, Interval, ReadTime, ShardCall
from winnow.searcher import Read, Retrieved
from winnow.stateless.replicas.partial import PartialResult, SendJoint, Shards

Result = TypeVar("Result")


class CallRecorder:
    """Sends and records the calls of one question. Times count from the start of the question."""

    def __init__(self, elapsed: float = 0.0, clock: Clock = time.perf_counter) -> None:
        """`elapsed`: seconds since the start of the question."""
        self._clock, self._started = clock, clock() - elapsed
        self._calls: list[ShardCall | _JointRecord] = []

    def elapsed(self) -> float:
        """Seconds since the start of the question."""
        return self._clock() - self._started

    async def call(
        self, shard: int, kind: CallKind, send: Callable[[], Coroutine[Any, Any, Result]]
    ) -> Result:
        """Sends a call and records it; returns its result and raises its errors."""
        start, index = self.elapsed(), len(self._calls)
        sent = ShardCall(
            shard=shard, kind=kind, outcome=CallOutcome.ABANDONED, span=Interval(start)
        )
        self._calls.append(sent)
        try:
            result = await send()
        except asyncio.CancelledError:
            raise
        except BaseException:
            self._calls[index] = self._ended(sent, CallOutcome.FAILED)
            raise
        retrieved, reads = _node_times(result, start)
        ended = self._ended(sent, CallOutcome.ANSWERED)
        self._calls[index] = replace(ended, retrieved=retrieved, reads=reads)
        return result

    def recording_joint_call(
        self, shards: Shards, send: SendJoint[Retrieved]
    ) -> SendJoint[Retrieved]:
        """Returns a function that sends a joint call and records it for each of its shards."""

        async def call() -> PartialResult[Retrieved]:
            record = _JointRecord(self.elapsed(), shards)
            self._calls.append(record)
            return await self._send_joint(record, shards, send)

        return call

    async def _send_joint(
        self, record: "_JointRecord", shards: Shards, send: SendJoint[Retrieved]
    ) -> PartialResult[Retrieved]:
        """Sends a call for some shards of a joint call, and records the end for each shard."""
        try:
            ended = await send()
        except asyncio.CancelledError:
            raise
        except BaseException:
            record.ends.update(dict.fromkeys(shards, (self.elapsed(), None)))
            raise
        now = self.elapsed()
        record.ends.update({shard: (now, result) for shard, result in ended.results.items()})
        further = {
            some: partial(self._send_joint, record, some, call)
            for some, call in ended.further.items()
        }
        return PartialResult(ended.results, further)

    def calls(self) -> tuple[ShardCall, ...]:
        """All calls so far, in the order in which they were sent.

        A call without a result is abandoned: its duration is the time until now.
        """
        found: list[ShardCall] = []
        for call in self._calls:
            if isinstance(call, _JointRecord):
                found += call.calls(self.elapsed())
            elif call.outcome is CallOutcome.ABANDONED:
                found.append(self._ended(call, call.outcome))
            else:
                found.append(call)
        return tuple(found)

    def _ended(self, call: ShardCall, outcome: CallOutcome) -> ShardCall:
        start = call.span.start
        return replace(call, outcome=outcome, span=Interval(start, self.elapsed() - start))


@dataclass(eq=False, slots=True)
class _JointRecord:
    """The record of a joint call."""

    start: float
    """Seconds from the start of the question to the start of the call."""
    shards: Shards
    ends: dict[int, tuple[float, Retrieved | None]] = field(default_factory=dict)
    """For each shard that has ended: when it ended, and its result; None for an error."""

    def calls(self, now: float) -> Iterator[ShardCall]:
        """Yields one call for each shard, as if the shard had been called alone."""
        spans: dict[float, Interval] = {}
        for shard in self.shards:
            ended_at, result = self.ends.get(shard, (now, None))
            outcome = CallOutcome.FAILED if shard in self.ends else CallOutcome.ABANDONED
            if (whole := spans.get(ended_at)) is None:
                whole = spans[ended_at] = Interval(self.start, ended_at - self.start)
            yield ShardCall(
                shard=shard,
                kind=CallKind.RETRIEVE,
                outcome=outcome if result is None else CallOutcome.ANSWERED,
                span=whole,
                retrieved=_retrieved(result, self.start) if result is not None else NEVER,
            )


def _retrieved(result: Retrieved | Read, sent_at: float) -> Interval:
    """When the content node retrieved."""
    return result.retrieved.later(sent_at) if result.retrieved.seconds else NEVER


def _node_times(result: object, sent_at: float) -> tuple[Interval, tuple[ReadTime, ...]]:
    """When the content node retrieved, and when it read each passage."""
    if not isinstance(result, Retrieved | Read):
        return NEVER, ()
    retrieved = _retrieved(result, sent_at)
    readings = result.readings if isinstance(result, Read) else ()
    reads = (ReadTime(each.passage.id, each.span.later(sent_at)) for each in readings)
    return retrieved, tuple(reads)
