"""What one span costs: where nothing is traced, as recorded here, and by OpenTelemetry's SDK.

    python -m bench.spans [--spans 20000] [--rounds 7] [--json]

Each has one attribute when it begins and gets one more, as a read does. Microseconds of processor
time for each: `at once` in the thread that serves, `later` in the one that sends (making messages
of what was recorded, without sending them). The least of some rounds, by turns. Needs
opentelemetry-sdk and opentelemetry-exporter-otlp-proto-common, which Winnow does without.
"""

import argparse
import json
import random
import sys
import time
from collections.abc import Callable

from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.proto.trace.v1 import trace_pb2
from opentelemetry.sdk.trace import ReadableSpan, SpanProcessor, TracerProvider

from winnow.telemetry.tracing.otlp import message
from winnow.telemetry.tracing.recorded import RecordedSpan
from winnow.telemetry.tracing.span import span
from winnow.telemetry.tracing.tracer import SamplingTracer

_AT_ONCE = 100


def untraced(count: int) -> None:
    """Spans of a call that nobody traces."""
    for number in range(count):
        with span("read", {"winnow.shard": number}) as step:
            step.set("winnow.queue_ms", 0.5)


class Recorded:
    """Spans of a call that is traced."""

    def __init__(self) -> None:
        self.spans: list[RecordedSpan] = []
        self._tracer = SamplingTracer(self.spans.append, 1.0, random.Random())

    def __call__(self, count: int) -> None:
        """Begins and ends them."""
        self.spans.clear()
        with self._tracer.begin("Answer", ()):
            untraced(count)

    def later(self, _count: int) -> None:
        """Makes messages of them."""
        for start in range(0, len(self.spans), _AT_ONCE):
            some = self.spans[start : start + _AT_ONCE]
            trace_pb2.ScopeSpans(spans=map(message, some)).SerializeToString()


class OfTheSdk:
    """The same by the SDK."""

    def __init__(self) -> None:
        self.spans: list[ReadableSpan] = []
        provider = TracerProvider()
        provider.add_span_processor(_Keeping(self.spans))
        self._tracer = provider.get_tracer("winnow")

    def __call__(self, count: int) -> None:
        """Begins and ends them."""
        self.spans.clear()
        begin = self._tracer.start_as_current_span
        for number in range(count):
            with begin("read", attributes={"winnow.shard": number}) as step:
                step.set_attribute("winnow.queue_ms", 0.5)

    def later(self, _count: int) -> None:
        """Makes messages of them."""
        for start in range(0, len(self.spans), _AT_ONCE):
            encode_spans(self.spans[start : start + _AT_ONCE]).SerializeToString()


class _Keeping(SpanProcessor):
    def __init__(self, spans: list[ReadableSpan]) -> None:
        self._spans = spans

    def on_end(self, span: ReadableSpan) -> None:
        self._spans.append(span)


def microseconds(work: Callable[[int], None], count: int) -> float:
    """Of processor time, for each span."""
    began = time.process_time()
    work(count)
    return 1e6 * (time.process_time() - began) / count


def measured(count: int, rounds: int) -> dict[str, float]:
    """The least of some rounds, by the name of what was done."""
    recorded, of_the_sdk = Recorded(), OfTheSdk()
    works: dict[str, Callable[[int], None]] = {
        "nothing traced": untraced,
        "recorded, at once": recorded,
        "recorded, later": recorded.later,
        "the SDK's, at once": of_the_sdk,
        "the SDK's, later": of_the_sdk.later,
    }
    found = [
        {name: microseconds(work, count) for name, work in works.items()} for _ in range(rounds)
    ]
    return {name: round(min(each[name] for each in found), 2) for name in works}


def main() -> int:
    """Measures; the exit code."""
    parser = argparse.ArgumentParser(prog="bench.spans", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--spans", type=int, default=20_000)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    found = measured(options.spans, options.rounds)
    if options.json:
        print(json.dumps(found, indent=2))
        return 0
    for name, cost in found.items():
        print(f"{name:20} {cost:7.2f} microseconds a span")
    return 0


if __name__ == "__main__":
    sys.exit(main())
