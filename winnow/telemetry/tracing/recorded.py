"""Recorded spans and their trace.

Knows a clock and ids; does not know where spans are sent. Conversions for sending are left to the
sending thread.
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
"""Errors that end abandoned work; a call that lost to its hedge did not fail."""
GIVEN_UP = "winnow.given_up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What all spans of this process for one caller have in common."""

    id: int
    state: str
    """State of other tracing systems (W3C `tracestate`), passed on unchanged."""
    epoch: int
    """Nanoseconds of the calendar at the zero of `time.perf_counter_ns`: by one clock, parts never
    begin before the whole, also where the calendar is set meanwhile.
    """
    new_id: Callable[[], int]
    """A number of 64 bits that is not 0."""
    record: Callable[["RecordedSpan"], None]
    """Called with each span when it has ended, in the thread where it ended."""

    def now(self) -> int:
        """Nanoseconds of the calendar."""
        return self.epoch + time.perf_counter_ns()


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
        """Begins when it is entered. `parent` is the id of the parent span; 0 for none."""
        self.trace, self.parent, self.name, self.kind = trace, parent, name, kind
        self.id = trace.new_id()
        self.attributes: dict[str, Value] = dict(attributes)
        self.began = self.ended = 0
        """Nanoseconds of the calendar; 0 where it has not ended."""
        self.fault: str | None = None
        """Why it failed; empty if it did not, None if that is not known."""
        self._token: Token[Span] | None = None

    @property
    def trace_id(self) -> str:
        return f"{self.trace.id:032x}"

    @property
    def exemplar(self) -> dict[str, str]:
        return {"trace_id": self.trace_id}

    @property
    def outgoing_metadata(self) -> tuple[tuple[str, str], ...]:
        return traceparent.written(self.trace.id, self.id, self.trace.state)

    def child(
        self, name: str, attributes: Attributes = NO_ATTRIBUTES, kind: SpanKind = SpanKind.INTERNAL
    ) -> Span:
        return RecordedSpan(
            trace=self.trace, parent=self.id, name=name, attributes=attributes, kind=kind
        )

    def set(self, key: str, value: Value) -> None:
        if not self.ended:  # then another thread reads it
            self.attributes[key] = value

    def failed(self, why: str) -> None:
        self.fault = why

    def __bool__(self) -> bool:
        return True

    def __enter__(self) -> Self:
        self._token = CURRENT.set(self)
        self.began = self.trace.now()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        if kind is not None:
            self._raised(kind)
        if self._token is not None:
            CURRENT.reset(self._token)
        self.ended = self.trace.now()
        self.trace.record(self)

    def _raised(self, kind: type[BaseException]) -> None:
        """The type of an error is enough: its text may quote a question."""
        if issubclass(kind, _GIVEN_UP):
            self.set(GIVEN_UP, True)
        elif self.fault is None:
            self.fault = kind.__name__
