"""Recorded spans and their trace.

Knows a clock and ids; does not know where spans are sent. The thread that sends spans converts
them.
"""

import asyncio
import time
from collections.abc import Callable
from contextvars import Token
from dataclasses import dataclass
from typing import Self

from winnow.errors import StoppedError
from winnow.telemetry.tracing import traceparent
from winnow.telemetry.tracing.span import CURRENT, NO_ATTRIBUTES, Attributes, Span, SpanKind, Value

_GIVEN_UP = (asyncio.CancelledError, StoppedError, GeneratorExit)
"""Errors that end abandoned work, such as a call whose hedge was faster; not failures."""
GIVEN_UP = "winnow.given_up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """The values that all spans of one call in this process share."""

    id: int
    state: str
    """The W3C `tracestate` of other tracing systems, passed on unchanged."""
    epoch_ns: int
    """Unix time in nanoseconds at the zero of `time.perf_counter_ns`.

    With one clock for all spans, a child never begins before its parent, even if the system time
    changes.
    """
    new_id: Callable[[], int]
    """Returns a random 64-bit number other than 0."""
    record: Callable[["RecordedSpan"], None]
    """Called with each ended span, in the thread where it ended."""

    def now_ns(self) -> int:
        """Returns the Unix time in nanoseconds."""
        return self.epoch_ns + time.perf_counter_ns()


class RecordedSpan(Span):
    """A span with a beginning, an end and attributes."""

    __slots__ = (
        "_token",
        "attributes",
        "began",
        "ended",
        "fault",
        "id",
        "kind",
        "name",
        "parent",
        "trace",
    )

    def __init__(
        self, *, trace: Trace, parent: int, name: str, attributes: Attributes, kind: SpanKind
    ) -> None:
        """The span begins when it is entered. `parent`: id of the parent span; 0 for none."""
        self.trace, self.parent, self.name, self.kind = trace, parent, name, kind
        self.id = trace.new_id()
        self.attributes: dict[str, Value] = dict(attributes)
        self.began = self.ended = 0
        """Unix time in nanoseconds; 0 before the span has begun or ended."""
        self.fault: str | None = None
        """Why the work failed; empty if it succeeded; None if not set."""
        self._token: Token[Span] | None = None

    @property
    def trace_id(self) -> str:
        return f"{self.trace.id:032x}"

    @property
    def exemplar(self) -> dict[str, str]:
        return {"trace_id": self.trace_id}

    @property
    def outgoing_metadata(self) -> tuple[tuple[str, str], ...]:
        return traceparent.trace_headers(self.trace.id, self.id, self.trace.state)

    def child(
        self, name: str, attributes: Attributes = NO_ATTRIBUTES, kind: SpanKind = SpanKind.INTERNAL
    ) -> Span:
        return RecordedSpan(
            trace=self.trace, parent=self.id, name=name, attributes=attributes, kind=kind
        )

    def set(self, key: str, value: Value) -> None:
        if not self.ended:  # after the end, another thread reads the attributes
            self.attributes[key] = value

    def set_fault(self, fault: str) -> None:
        self.fault = fault

    def __bool__(self) -> bool:
        return True

    def __enter__(self) -> Self:
        self._token = CURRENT.set(self)
        self.began = self.trace.now_ns()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is not None:
            self._record_error(kind)
        if self._token is not None:
            CURRENT.reset(self._token)
        self.ended = self.trace.now_ns()
        self.trace.record(self)

    def _record_error(self, kind: type[BaseException]) -> None:
        """Records the type of an error but not its text, which may quote a question."""
        if issubclass(kind, _GIVEN_UP):
            self.set(GIVEN_UP, True)
        elif self.fault is None:
            self.fault = kind.__name__
