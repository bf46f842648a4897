"""Spans: timed pieces of work, each of which may be a part of another one.

The current span is a context variable, like the request id, so `span("encode")` needs no parent
argument. Without tracing, the current span is a `Span`, which records nothing and costs only a
lookup and a call. This module does not know how spans are
recorded, or where they are sent.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from enum import Enum
from typing import Self

Value = str | int | float
Attributes = Mapping[str, Value]
NO_ATTRIBUTES: Attributes = {}


class SpanKind(Enum):
    """The kind of a span, as OpenTelemetry defines it."""

    INTERNAL = "internal"
    """Work within this process."""
    SERVER = "server"
    """Work of this process for a remote caller."""
    CLIENT = "client"
    """Work of a remote process that this process waits for."""


class Span:
    """A span that is not recorded. A span is a context manager around the work."""

    __slots__ = ()

    @property
    def trace_id(self) -> str:
        """The trace id, 32 hexadecimal digits; empty if nothing is recorded."""
        return ""

    @property
    def exemplar(self) -> dict[str, str] | None:
        """The labels that link a histogram to the trace; None without a trace."""
        return None

    @property
    def outgoing_metadata(self) -> tuple[tuple[str, str], ...]:
        """Metadata or headers that make this span the parent of spans in another process."""
        return ()

    def child(
        self, name: str, attributes: Attributes = NO_ATTRIBUTES, kind: SpanKind = SpanKind.INTERNAL
    ) -> "Span":
        """Returns a span for a part of this work, which may run in another thread."""
        return self

    def set(self, key: str, value: Value) -> None:
        """Sets an attribute. The value must not contain text of a question or passage."""

    def set_fault(self, fault: str) -> None:
        """Sets why the work failed; empty means success. Overrides raised errors."""

    def __bool__(self) -> bool:
        """Whether the span is recorded."""
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        return None


NO_SPAN = Span()
CURRENT: ContextVar[Span] = ContextVar("winnow_span", default=NO_SPAN)


def current() -> Span:
    """Returns the span of the current task."""
    return CURRENT.get()


def span(
    name: str, attributes: Attributes = NO_ATTRIBUTES, kind: SpanKind = SpanKind.INTERNAL
) -> Span:
    """Returns a child of the current task's span, for a part of its work."""
    return CURRENT.get().child(name, attributes, kind)
