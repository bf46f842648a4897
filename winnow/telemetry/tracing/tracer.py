"""Which calls are traced: calls of a trace that the caller records, and a share of the others."""

import random
import time
from collections.abc import Callable

from winnow.telemetry.tracing import traceparent
from winnow.telemetry.tracing.recorded import RecordedSpan, Trace
from winnow.telemetry.tracing.span import NOTHING, Span, SpanKind
from winnow.telemetry.tracing.traceparent import Sent

_POLLING = ("Get", "List")
"""Prefixes of methods that are not traced: nodes are polled by them twice a second."""


class Tracer:
    """Traces nothing."""

    def traces(self, method: str) -> bool:
        """Whether calls of a method, such as `Answer`, may be traced."""
        return False

    def begin(self, name: str, sent: Sent) -> Span:
        """The span of a call: part of the caller's trace, or the first of another trace.

        `name` is that of the method; `sent` is gRPC metadata, or the headers of an ASGI request.
        """
        return NOTHING


NO_TRACER = Tracer()


class SamplingTracer(Tracer):
    """Traces what callers record, and a share of the calls that come without a trace."""

    def __init__(
        self, record: Callable[[RecordedSpan], None], share: float, chance: random.Random
    ) -> None:
        """`record` is called with every ended span, in its thread, and must not block. `share` is
        that of calls without a trace, 0 to 1.
        """
        self._record, self._share, self._chance = record, share, chance

    def traces(self, method: str) -> bool:
        return not method.startswith(_POLLING)

    def begin(self, name: str, sent: Sent) -> Span:
        caller = traceparent.read(sent)
        if caller is not None:
            if not caller.sampled:
                return NOTHING
            return self._first(name, caller.trace_id, caller.span_id, caller.state)
        if self._chance.random() >= self._share:
            return NOTHING
        return self._first(name, self._chance.randrange(1, 1 << 128), 0, "")

    def _first(self, name: str, trace_id: int, parent: int, state: str) -> Span:
        epoch = time.time_ns() - time.perf_counter_ns()
        trace = Trace(
            id=trace_id, state=state, epoch=epoch, new_id=self._new_id, record=self._record
        )
        return RecordedSpan(
            trace=trace, parent=parent, name=name, attributes={}, kind=SpanKind.SERVER
        )

    def _new_id(self) -> int:
        return self._chance.getrandbits(64) or 1
