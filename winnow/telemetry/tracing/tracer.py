"""Decides which calls are traced: those whose caller records a trace, and a share of the others."""

import random
import time
from collections.abc import Callable

from winnow.telemetry.tracing import traceparent
from winnow.telemetry.tracing.recorded import RecordedSpan, Trace
from winnow.telemetry.tracing.span import NO_SPAN, Span, SpanKind
from winnow.telemetry.tracing.traceparent import Headers

_POLLING = ("Get", "List")
"""Prefixes of methods that are not traced, because nodes are polled with them twice a second."""


class Tracer:
    """A tracer that traces nothing."""

    def may_trace(self, method: str) -> bool:
        """Whether calls of a method, such as `Answer`, may be traced."""
        return False

    def begin(self, name: str, headers: Headers) -> Span:
        """Returns the span of a call, in the trace of its caller or as the first of a new trace.

        `name`: name of the method. `headers`: gRPC metadata, or the headers of an ASGI request.
        """
        return NO_SPAN


NO_TRACER = Tracer()


class SamplingTracer(Tracer):
    """Traces calls whose caller records a trace, and a share of the calls without a trace."""

    def __init__(
        self, record: Callable[[RecordedSpan], None], share: float, rng: random.Random
    ) -> None:
        """`record` is called with each ended span, in the span's thread. It must not block.

        `share`: share, 0 to 1, of the calls without a trace that are traced.
        """
        self._record, self._share, self._rng = record, share, rng

    def may_trace(self, method: str) -> bool:
        return not method.startswith(_POLLING)

    def begin(self, name: str, headers: Headers) -> Span:
        caller = traceparent.parse_caller(headers)
        if caller is not None:
            if not caller.sampled:
                return NO_SPAN
            return self._root_span(name, caller.trace_id, caller.span_id, caller.state)
        if self._rng.random() >= self._share:
            return NO_SPAN
        return self._root_span(name, self._rng.randrange(1, 1 << 128), 0, "")

    def _root_span(self, name: str, trace_id: int, parent: int, state: str) -> Span:
        epoch_ns = time.time_ns() - time.perf_counter_ns()
        trace = Trace(
            id=trace_id, state=state, epoch_ns=epoch_ns, new_id=self._new_id, record=self._record
        )
        return RecordedSpan(
            trace=trace, parent=parent, name=name, attributes={}, kind=SpanKind.SERVER
        )

    def _new_id(self) -> int:
        return self._rng.getrandbits(64) or 1
