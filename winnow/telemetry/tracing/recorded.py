"""Pieces of work that are recorded, and the trace that they belong to.

Knows a clock and ids; does not know where they go. What is only needed to send them is left to the
thread that does.
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
"""What ends work that nobody waits for any more; a call that lost to its hedge did not fail."""
GIVEN_UP = "winnow.given_up"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """What all pieces of work that this process does for one caller have in common."""

    id: int
    state: str
    """Of other systems that trace (W3C `tracestate`): handed on as it came."""
    epoch: int
    """Nanoseconds of the calendar at the zero of `time.perf_counter_ns`: by one clock, parts never
    begin before the whole, also where the calendar is set meanwhile.
    """
    new_id: Callable[[], int]
    """A number of 64 bits that is not 0."""
    record: Callable[["RecordedSpan"], None]
    """Is given each piece of work when it has ended, in whichever thread it did."""

    def now(self) -> int:
        """Nanoseconds of the calendar."""
        return self.epoch + time.perf_counter_ns()


class RecordedSpan(Span):
    """A piece of work with a beginning, an end, and what is said of it."""

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
        """Begins when it is entered. `parent`: the id of what it is a part of; 0 for nothing."""
        self.trace, self.parent, self.name, self.kind = trace, parent, name, kind
        self.id = trace.new_id()
        self.attributes: dict[str, Value] = dict(attributes)
        self.began = self.ended = 0
        """Nanoseconds of the calendar; 0 where it has not ended."""
        self.fault: str | None = None
        """Why it failed; empty where it did not, None where nobody has said."""
        self._token: Token[Span] | None = None

    @property
    def trace_id(self) -> str:
        return f"{self.trace.id:032x}"

    @property
    def exemplar(self) -> dict[str, str]:
        return {"trace_id": self.trace_id}

    @property
    def outgoing(self) -> tuple[tuple[str, str], ...]:
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
        """The kind of an error says enough: its text may quote what somebody asked."""
        if issubclass(kind, _GIVEN_UP):
            self.set(GIVEN_UP, True)
        elif self.fault is None:
            self.fault = kind.__name__
