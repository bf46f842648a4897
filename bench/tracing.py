"""What traces cost: the same questions to a cluster that traces them, and to one that does not.

    python -m bench.tracing --index INDEX [--questions FILE] [--rounds 20] [--at-once 1] [--json]

Starts two clusters on this machine, alike but for `--trace-to`, and a collector that takes what it
is sent and looks at it only afterwards. Ten questions go to one cluster, the same ten to the other,
round after round, in another order in each; answers are not remembered. Says

- the median and the 95th percentile of the milliseconds of a question, and how much longer the same
  question took with traces (median over questions);
- milliseconds of processor time of a question, of all processes of a cluster together, which holds
  what is done later, by the threads that send spans;
- whether every question came as one whole trace: with a root, and no part whose parent is missing.

Exits with 1 if the median is more than `--bar` percent higher with traces, or a trace is not whole.
Needs the extra otel.
"""

import argparse
import asyncio
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import grpc
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2
from opentelemetry.proto.trace.v1 import trace_pb2

from bench.idle import spent
from winnow import signals
from winnow.bundle import default_bundle
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.cli.questions import read_questions
from winnow.client.messages import AnswerClient
from winnow.packaged import demo_corpus
from winnow.settings.common import cores
from winnow.v1 import answer_pb2

BLOCK = 10
_TIMEOUT = 30.0
_EXPORT = "/opentelemetry.proto.collector.trace.v1.TraceService/Export"
_SETTLING = 2.0
"""Seconds for the last spans to be sent."""


class Collector(grpc.GenericRpcHandler):
    """Takes messages as they are: to read them is the work of another machine."""

    def __init__(self) -> None:
        self.messages: list[bytes] = []

    def service(self, handler_call_details: Any) -> Any:
        """The one method of a collector."""
        if handler_call_details.method != _EXPORT:
            return None
        return grpc.unary_unary_rpc_method_handler(self._take)

    async def _take(self, message: bytes, _context: Any) -> bytes:
        self.messages.append(message)
        return b""

    def spans(self) -> Iterator[trace_pb2.Span]:
        """All that came."""
        for message in self.messages:
            request = trace_service_pb2.ExportTraceServiceRequest.FromString(message)
            for resource in request.resource_spans:
                for scope in resource.scope_spans:
                    yield from scope.spans


@dataclass
class Way:
    """A cluster, and what was measured of it."""

    cluster: LocalCluster
    client: AnswerClient
    milliseconds: list[float] = field(default_factory=list)
    processor: float = 0.0
    """Seconds."""

    @property
    def pids(self) -> list[int]:
        """Of its processes."""
        names = ("front", *(f"node {number}" for number in range(len(self.cluster.nodes))))
        return [self.cluster.pid(name) for name in names]

    async def ask(self, texts: Sequence[str], at_once: int) -> None:
        """Asks each question once, so many at the same time."""
        before = sum(map(spent, self.pids))
        for start in range(0, len(texts), at_once):
            some = texts[start : start + at_once]
            self.milliseconds += await asyncio.gather(*map(self._one, some))
        self.processor += sum(map(spent, self.pids)) - before

    async def _one(self, text: str) -> float:
        request = answer_pb2.AnswerRequest(question=text, max_loss=0, fresh=True)
        started = time.perf_counter()
        await self.client.ask(request, _TIMEOUT)
        return 1e3 * (time.perf_counter() - started)

    def row(self) -> dict[str, float]:
        """Its figures."""
        taken = self.milliseconds
        return {
            "p50_ms": round(median(taken), 3),
            "p95_ms": round(quantiles(taken, n=20)[-1], 3),
            "processor_ms": round(1e3 * self.processor / len(taken), 3),
        }


def whole(spans: Sequence[trace_pb2.Span]) -> bool:
    """Whether a trace has one root, and the parent of everything else."""
    ids = {each.span_id for each in spans}
    orphans = [each for each in spans if each.parent_span_id and each.parent_span_id not in ids]
    return not orphans and sum(not each.parent_span_id for each in spans) == 1


async def measure(ways: Sequence[Way], texts: Sequence[str], rounds: int, at_once: int) -> None:
    """All ways in turn, in another order in each round."""
    for number in range(rounds):
        start = number * BLOCK % len(texts)
        block = [*texts, *texts][start : start + BLOCK]
        for way in ways if number % 2 else reversed(ways):
            await way.ask(block, at_once)
        print(f"round {number + 1} of {rounds}", file=sys.stderr, flush=True)


async def run(options: argparse.Namespace) -> dict[str, Any]:
    """Starts everything, and measures."""
    texts = [each.question for each in read_questions(options.questions)][: options.limit]
    collector, server = Collector(), grpc.aio.server()
    server.add_generic_rpc_handlers((collector,))
    traces = ("--trace-to", f"http://127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}")
    await server.start()
    index, bundle, free = options.index, default_bundle(), "127.0.0.1:0"
    plans = {
        "off": LocalPlan(index, bundle, free),
        "on": LocalPlan(index, bundle, free, front=traces, node=traces),
    }
    with ExitStack() as stack:
        ways: dict[str, Way] = {}
        for name, plan in plans.items():
            cluster = stack.enter_context(LocalCluster(plan))
            cluster.start()
            await cluster.wait_ready()
            ways[name] = Way(cluster, AnswerClient(cluster.address))
        for way in ways.values():
            await way.ask(texts[:BLOCK], 1)
            way.milliseconds, way.processor = [], 0.0
        await asyncio.sleep(_SETTLING)
        collector.messages.clear()
        await measure([*ways.values()], texts, options.rounds, options.at_once)
        await asyncio.sleep(_SETTLING)
    await server.stop(None)
    return report(ways, collector)


def report(ways: dict[str, Way], collector: Collector) -> dict[str, Any]:
    """The figures of both ways, and of one beside the other."""
    found: defaultdict[bytes, list[trace_pb2.Span]] = defaultdict(list)
    for each in collector.spans():
        found[each.trace_id].append(each)
    off, on = ways["off"].milliseconds, ways["on"].milliseconds
    rows: dict[str, Any] = {name: way.row() for name, way in ways.items()}
    rows["more_ms"] = round(median(b - a for a, b in zip(off, on, strict=True)), 3)
    rows["more_percent"] = {
        figure: round(100 * (rows["on"][figure] / rows["off"][figure] - 1), 2)
        for figure in rows["off"]
    }
    rows["questions"] = len(on)
    rows["whole_traces"] = sum(map(whole, found.values()))
    rows["spans_per_question"] = round(sum(map(len, found.values())) / len(on), 1)
    return rows


def main() -> int:
    """Measures; the exit code."""
    parser = argparse.ArgumentParser(prog="bench.tracing", description=__doc__)
    parser.formatter_class = argparse.RawDescriptionHelpFormatter
    parser.add_argument("--index", type=Path, required=True)
    parser.add_argument("--questions", type=Path, default=demo_corpus() / "questions.jsonl")
    parser.add_argument("--limit", type=int, default=200, help="most questions")
    parser.add_argument("--rounds", type=int, default=20, help="of ten questions each way")
    parser.add_argument("--at-once", type=int, default=1, help="questions at the same time")
    parser.add_argument("--bar", type=float, default=3.0, help="most percent of the median")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    signals.end_on_signals()
    rows = signals.run(run(options))
    if options.json:
        print(json.dumps({"cores": cores(), "at_once": options.at_once, **rows}, indent=2))
    else:
        for name in ("off", "on", "more_percent"):
            shown = ", ".join(f"{figure} {value:8.2f}" for figure, value in rows[name].items())
            print(f"{name:13} {shown}")
        print(f"the same question took {rows['more_ms']:.2f} ms more (median)")
        print(
            f"{rows['whole_traces']} whole traces of {rows['questions']} questions, "
            f"{rows['spans_per_question']:.1f} spans each; {cores()} cores"
        )
    complete = rows["whole_traces"] == rows["questions"]
    return int(not complete or rows["more_percent"]["p50_ms"] > options.bar)


if __name__ == "__main__":
    sys.exit(main())
