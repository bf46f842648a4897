"""Pieces of work, each a part of the one that it is done for.

The current piece travels with the task, as the request id does, so `span("encode")` needs nobody to
hand it anything. Where nothing is traced the current one is a `Span`, which records nothing: that
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
    """A piece of work that nobody records; a context manager that lasts as long as the work."""

    __slots__ = ()

    @property
    def trace_id(self) -> str:
        """32 hexadecimal digits; empty where nothing is recorded."""
        return ""

    @property
    def exemplar(self) -> dict[str, str] | None:
        """What leads from a figure in a histogram to its trace; None where there is no trace."""
        return None

    @property
    def outgoing(self) -> tuple[tuple[str, str], ...]:
        """Metadata, or headers, by which another process knows that it works for this."""
        return ()

    def child(
        self, name: str, attributes: Attributes = NO_ATTRIBUTES, kind: SpanKind = SpanKind.INTERNAL
    ) -> "Span":
        """A part of this work, which may be done in another thread."""
        return self

    def set(self, key: str, value: Value) -> None:
        """Says something of the work. Never what somebody asked, nor what stands in a passage."""

    def failed(self, why: str) -> None:
        """Says how it ended, whatever is raised: with a fault, or without one if `why` is empty."""

    def __bool__(self) -> bool:
        """Whether it is recorded."""
        return False

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: object) -> None:
        return None


NOTHING = Span()
CURRENT: ContextVar[Span] = ContextVar("winnow_span", default=NOTHING)


def current() -> Span:
    """The piece of work that this task does."""
    return CURRENT.get()


def span(
    name: str, attributes: Attributes = NO_ATTRIBUTES, kind: SpanKind = SpanKind.INTERNAL
) -> Span:
    """A part of the work that this task does."""
    return CURRENT.get().child(name, attributes, kind)
