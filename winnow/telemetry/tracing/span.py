"""Spans: pieces of work, each a part of another one.

The current span travels with the task, as the request id does, so `span("encode")` needs no
arguments for it. Where nothing is traced, the current span is a `Span`, which records nothing and
costs a look-up and a call. Knows neither who records spans nor where they are sent.
"""

from collections.abc import Mapping
from contextvars import ContextVar
from enum import Enum
from typing import Self

Value = str | int | float
Attributes = Mapping[str, Value]
NO_ATTRIBUTES: Attributes = {}


class SpanKind(Enum):
    """Where a piece of work is done, in the words of OpenTelemetry."""

    INTERNAL = "internal"
    """Here."""
    SERVER = "server"
    """Here, for a caller elsewhere."""
    CLIENT = "client"
    """Elsewhere: it is waited for here."""


class Span:
    """A span that is not recorded; a context manager that lasts as long as the work."""

    __slots__ = ()

    @property
    def trace_id(self) -> str:
        """32 hexadecimal digits; empty where nothing is recorded."""
        return ""

    @property
    def exemplar(self) -> dict[str, str] | None:
        """The labels that lead from a histogram to the trace; None without a trace."""
        return None

    @property
    def outgoing_metadata(self) -> tuple[tuple[str, str], ...]:
        """Metadata, or headers, that tell another process that it works for this span."""
        return ()

    def child(
        self, name: str, attributes: Attributes = NO_ATTRIBUTES, kind: SpanKind = SpanKind.INTERNAL
    ) -> "Span":
        """A part of this work, which may be done in another thread."""
        return self

    def set(self, key: str, value: Value) -> None:
        """Sets an attribute. Never the text of a question or of a passage."""

    def failed(self, why: str) -> None:
        """Sets how the work ended, despite any error: the fault, or success if `why` is empty."""

    def __bool__(self) -> bool:
        """Whether the span is recorded."""
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        return None


NOTHING = Span()
CURRENT: ContextVar[Span] = ContextVar("winnow_span", default=NOTHING)


def current() -> Span:
    """The span of the present task."""
    return CURRENT.get()


def span(
    name: str, attributes: Attributes = NO_ATTRIBUTES, kind: SpanKind = SpanKind.INTERNAL
) -> Span:
    """A part of the work of the present task."""
    return CURRENT.get().child(name, attributes, kind)
