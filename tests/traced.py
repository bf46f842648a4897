"""What a test has traced: the pieces of work that have ended, in the order of their ends."""

import random

from winnow.telemetry.tracing.recorded import RecordedSpan
from winnow.telemetry.tracing.span import Span
from winnow.telemetry.tracing.tracer import SamplingTracer


class Traced(list[RecordedSpan]):
    """Recorded spans, and a tracer that adds to them."""

    def __init__(self, share: float = 1.0) -> None:
        super().__init__()
        self.tracer = SamplingTracer(self.append, share, random.Random(1))

    def begin(self, name: str = "call") -> Span:
        """A call that comes without a trace."""
        return self.tracer.begin(name, ())

    def named(self, name: str) -> list[RecordedSpan]:
        """Those of a name."""
        return [each for each in self if each.name == name]

    def one(self, name: str) -> RecordedSpan:
        """The only one of its name."""
        (found,) = self.named(name)
        return found

    def above(self, span: RecordedSpan) -> list[str]:
        """The names of all that a piece of work is a part of, the whole first."""
        found, by_id = list[str](), {each.id: each for each in self}
        while span.parent in by_id:
            span = by_id[span.parent]
            found.insert(0, span.name)
        return found
