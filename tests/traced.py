"""Spans that a test has recorded, in the order of their ends."""

import random

from winnow.telemetry.tracing.recorded import RecordedSpan
from winnow.telemetry.tracing.span import Span
from winnow.telemetry.tracing.tracer import SamplingTracer


class Traced(list[RecordedSpan]):
    """Recorded spans, and the tracer that records them."""

    def __init__(self, share: float = 1.0) -> None:
        super().__init__()
        self.tracer = SamplingTracer(self.append, share, random.Random(1))

    def begin(self, name: str = "call") -> Span:
        """Begins a span of a call without a parent trace."""
        return self.tracer.begin(name, ())

    def named(self, name: str) -> list[RecordedSpan]:
        """Returns the spans with this name."""
        return [each for each in self if each.name == name]

    def one(self, name: str) -> RecordedSpan:
        """Returns the only span with this name."""
        (found,) = self.named(name)
        return found

    def above(self, span: RecordedSpan) -> list[str]:
        """Returns the names of a span's ancestors, the root first."""
        found, by_id = list[str](), {each.id: each for each in self}
        while span.parent in by_id:
            span = by_id[span.parent]
            found.insert(0, span.name)
        return found
