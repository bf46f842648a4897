"""One trace for each question, over a cluster with two shards and two replicas each."""

import asyncio
import contextlib
import itertools
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any

import grpc
import pytest
import pytest_asyncio
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from tenacious import LONG, happens
from traced import Traced
from whole_cluster import Running, running

from winnow.bundle import Bundle
from winnow.client.channels import open_aio_channel
from winnow.errors import UnavailableError
from winnow.packaged import default_heads
from winnow.replicas.policy.hedging import HedgeSettings
from winnow.replicas.policy.outliers import OutlierSettings
from winnow.replicas.policy.replicas import ReplicaSettings
from winnow.replicas.routing import ReplicaPolicies
from winnow.stateless.cluster.polling import DiscoverySettings
from winnow.telemetry.endpoint import exposition
from winnow.telemetry.tracing.recorded import GIVEN_UP, RecordedSpan
from winnow.telemetry.tracing.span import SpanKind
from winnow.telemetry.tracing.traceparent import trace_headers
from winnow.v1 import answer_pb2, answer_pb2_grpc, head_pb2, head_pb2_grpc

pytestmark = [pytest.mark.bundle, pytest.mark.asyncio(loop_scope="module")]
QUESTION = "Which xylophonist discovered penicillin?"
ANSWER, PREDICT = "winnow.v1.AnswerService/Answer", "winnow.v1.HeadService/Predict"
RETRIEVE, READ, SEARCH = (
    f"winnow.v1.ShardService/{each}" for each in ("Retrieve", "Read", "Search")
)
HEDGING = HedgeSettings(min_samples=1, min_delay=0.0, budget=1.0, reserve=0)
"""Settings that hedge every call immediately."""
PATIENT = DiscoverySettings(poll_every=0.05, poll_timeout=LONG)
"""Settings whose polls may be late on a busy machine."""
NEVER_LATE = HedgeSettings(min_samples=10**6)
_numbers = itertools.count(1)


class Scene:
    """A cluster and its spans; it traces only calls whose callers trace them."""

    def __init__(self, cluster: Running, traced: Traced, channel: grpc.aio.Channel) -> None:
        self.cluster, self.traced, self.channel = cluster, traced, channel

    def call(self, trace: int, **options: Any) -> Any:
        """Sends a question that belongs to a trace; returns the running call."""
        asked = {"question": QUESTION, "passages_to_read": 4, "fresh": True, **options}
        stub = answer_pb2_grpc.AnswerServiceStub(self.channel)
        request = answer_pb2.AnswerRequest(**asked)
        return stub.Answer(request, timeout=LONG, metadata=trace_headers(trace, 1))

    async def ask(self, **options: Any) -> list[RecordedSpan]:
        """Asks until a question is answered from the whole index; returns the spans of that one.

        A busy machine may answer a question from a part of the index.
        """
        for trace in itertools.islice(_numbers, 20):
            reply = await self.call(trace, **options)
            if reply.coverage.complete:
                break
        return self.of(trace)

    def of(self, trace: int) -> list[RecordedSpan]:
        """Returns the ended spans of a trace."""
        return [each for each in self.traced if each.trace.id == trace]

    def above(self, span: RecordedSpan) -> str:
        """Returns the path of a span's ancestors, in which retries and hedges count as calls."""
        again = {"retry": "ask", "hedge": "ask"}
        return " > ".join(again.get(name, name) for name in self.traced.above(span))

    def patch(
        self,
        monkeypatch: pytest.MonkeyPatch,
        method: str,
        before: Callable[[], Coroutine[Any, Any, None]],
        nodes: slice = slice(None),
    ) -> None:
        """Makes nodes await `before()` at the start of each call of a method."""
        for node in self.cluster.nodes[nodes]:
            doing = getattr(node.searcher, method)

            async def patched(*given: Any, doing: Any = doing) -> Any:
                await before()
                return await doing(*given)

            monkeypatch.setattr(node.searcher, method, patched)


@contextlib.asynccontextmanager
async def opened(
    bundle: Bundle, index: Path, hedge: HedgeSettings, heads: Path | None = None
) -> AsyncIterator[Scene]:
    traced = Traced(share=0.0)
    patient = ReplicaSettings(outliers=OutlierSettings(silence=LONG))
    policies = ReplicaPolicies(patient, hedge)
    async with (
        running(
            index,
            bundle,
            replicas=2,
            heads=heads,
            tracer=traced.tracer,
            policies=policies,
            looks=PATIENT,
        ) as cluster,
        open_aio_channel(cluster.client.address) as channel,
    ):
        yield Scene(cluster, traced, channel)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def scene(bundle: Bundle, indexes: dict[int, Path]) -> AsyncIterator[Scene]:
    async with opened(bundle, indexes[2], NEVER_LATE, default_heads()) as made:
        yield made


def led_from(registry: CollectorRegistry) -> set[str]:
    """Returns the stages whose histograms have an exemplar."""
    _, page = exposition(registry, "application/openmetrics-text")
    families = text_string_to_metric_families(page.decode())  # type: ignore[no-untyped-call]
    samples = [sample for family in families for sample in family.samples]
    return {each.labels["stage"] for each in samples if each.exemplar and "stage" in each.labels}


def named(spans: list[RecordedSpan], name: str) -> list[RecordedSpan]:
    return [each for each in spans if each.name == name]


async def test_a_question_is_one_trace_with_every_stage_call_and_read(scene: Scene) -> None:
    spans = await scene.ask()
    above = {each: scene.above(each) for each in spans}
    assert {each.name for each in spans if above[each] == ANSWER} == {
        "admit", "encode", "retrieve", "choose", "read", "merge",
    }  # fmt: skip
    retrieved = named(spans, "shard retrieve")
    assert {each.attributes["winnow.shard"] for each in retrieved} == {0, 1}
    assert {above[each] for each in named(spans, RETRIEVE)} == {
        f"{ANSWER} > retrieve > shard retrieve > ask"
    }
    reads = named(spans, "read passage")
    assert len({each.attributes["winnow.passage_id"] for each in reads}) == 4
    assert {above[each] for each in reads} == {
        f"{ANSWER} > read > shard read > ask > {READ} > read"
    }
    assert not named(spans, ANSWER)[0].fault


async def test_no_span_lasts_longer_than_the_parent_that_waits_for_it(scene: Scene) -> None:
    spans = await scene.ask()
    by_id = {each.id: each for each in spans}
    for part in spans:
        whole = by_id.get(part.parent)
        if whole is not None and not whole.fault and GIVEN_UP not in whole.attributes:
            assert whole.ended - whole.began >= part.ended - part.began > 0


async def test_a_caller_finds_its_question_by_its_trace_and_request_id(scene: Scene) -> None:
    trace = next(_numbers)
    reply = await scene.call(trace)
    spans = scene.of(trace)
    whole = named(spans, ANSWER)[0]
    assert whole.parent == 1
    asked = {each.attributes["winnow.request_id"] for each in spans if each.kind is SpanKind.SERVER}
    assert asked == {reply.request_id}
    assert whole.attributes["winnow.passages_read"] == reply.passages_read
    assert whole.attributes["winnow.passages_needed"] == reply.passages_needed
    assert whole.attributes["winnow.complete"] == reply.coverage.complete


async def test_the_histograms_of_every_stage_have_exemplars(scene: Scene) -> None:
    await scene.ask()
    stages = {"queue", "retrieve", "read"}
    assert stages <= led_from(scene.cluster.registry)
    assert stages <= set.union(*(led_from(node.registry) for node in scene.cluster.nodes))


async def test_per_shard_every_shard_searches_in_one_call(scene: Scene) -> None:
    spans = await scene.ask(read_scope=answer_pb2.READ_SCOPE_PER_SHARD)
    assert {scene.above(each) for each in named(spans, SEARCH)} == {
        f"{ANSWER} > search > shard search > ask"
    }
    assert {scene.above(each) for each in named(spans, "read passage")} == {
        f"{ANSWER} > search > shard search > ask > {SEARCH} > read"
    }


async def test_a_cached_answer_calls_no_shard(scene: Scene) -> None:
    await scene.ask(fresh=False)
    trace = next(_numbers)
    reply = await scene.call(trace, fresh=False)
    assert reply.cached
    (only,) = scene.of(trace)
    assert only.attributes["winnow.cached"]


async def test_heads_of_a_question_are_spans_of_its_trace(scene: Scene) -> None:
    spans = await scene.ask(heads=["intent"])
    assert [scene.above(each) for each in named(spans, "heads")] == [ANSWER]


async def test_a_prediction_is_one_trace(scene: Scene) -> None:
    trace = next(_numbers)
    request = head_pb2.PredictRequest(texts=["A penicillin.", "Another one."], head_ids=["intent"])
    stub = head_pb2_grpc.HeadServiceStub(scene.channel)
    await stub.Predict(request, timeout=LONG, metadata=trace_headers(trace, 1))
    spans = scene.of(trace)
    assert [scene.above(each) for each in named(spans, "text")] == [PREDICT] * 2
    assert {scene.above(each) for each in named(spans, "encode")} == {f"{PREDICT} > text"}


async def test_a_question_is_not_traced_unless_its_caller_traces_it(scene: Scene) -> None:
    before = len(scene.traced)
    await scene.cluster.client.ask(answer_pb2.AnswerRequest(question=QUESTION, fresh=True), LONG)
    assert len(scene.traced) == before


async def test_a_failed_call_and_its_retry_have_separate_spans(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = itertools.count()

    async def fail_once() -> None:
        if next(calls) == 0:
            raise UnavailableError("xylophonist")

    scene.patch(monkeypatch, "retrieve", fail_once, slice(0, 2))
    trace = next(_numbers)  # also if the other shard is late: only its first call fails
    await scene.call(trace)
    spans = scene.of(trace)
    (first,) = [each for each in named(spans, "ask") if each.fault]
    (retry,) = named(spans, "retry")
    assert (first.fault, retry.fault) == ("UnavailableError", None)
    assert first.parent == retry.parent
    assert first.attributes["server.address"] != retry.attributes["server.address"]
    assert [each.fault for each in named(spans, RETRIEVE) if each.fault] == ["UNAVAILABLE"]


async def test_cancelling_a_question_ends_all_its_spans(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    hanging, trace = asyncio.Event(), next(_numbers)

    async def hang() -> None:
        hanging.set()
        await asyncio.Event().wait()

    scene.patch(monkeypatch, "read", hang)
    call = scene.call(trace)
    await asyncio.wait_for(hanging.wait(), LONG)
    call.cancel()
    names = (ANSWER, "read", "shard read", "ask", READ)

    def given_up(name: str) -> list[RecordedSpan]:
        return [each for each in named(scene.of(trace), name) if GIVEN_UP in each.attributes]

    await happens(lambda: all(map(given_up, names)))  # they end in any order
    for name in names:
        ended = given_up(name)
        assert ended, name
        assert not any(each.fault for each in ended)


async def test_no_trace_contains_question_text(scene: Scene) -> None:
    with contextlib.suppress(grpc.aio.AioRpcError):
        await scene.ask(question=QUESTION * 100)
    with contextlib.suppress(grpc.aio.AioRpcError):
        await scene.ask(heads=["xylophonist"])
    await scene.ask()
    for each in scene.traced:
        said = f"{each.name} {each.attributes} {each.fault}"
        assert "xylophonist" not in said.lower()


async def test_a_hedge_has_a_separate_span_and_the_slower_call_has_no_error(
    bundle: Bundle, indexes: dict[int, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = itertools.count()

    async def hang_once() -> None:
        if next(calls) == 0:
            await asyncio.Event().wait()

    async with opened(bundle, indexes[2], HEDGING) as scene:
        await scene.ask()  # who knows not how long calls take does not hedge
        scene.patch(monkeypatch, "retrieve", hang_once, slice(0, 2))
        trace = next(_numbers)
        await scene.call(trace)
        first, hedge = (
            {each.parent: each for each in named(scene.of(trace), name)}
            for name in ("ask", "hedge")
        )
        rivals = [(first[call], hedge[call]) for call in hedge]
        # on a busy machine it may be the hedge that hangs, and the other shard may be hedged, too
        (both,) = [pair for pair in rivals if _shard(scene, pair[0]) == 0]
        (beaten,) = [each for each in both if GIVEN_UP in each.attributes]
        assert [each.fault for each in both] == [None, None]
        # the node is told, and ends its part, too
        await happens(lambda: _given_up(scene.of(trace), beaten), LONG)


def _shard(scene: Scene, attempt: RecordedSpan) -> object:
    (call,) = [each for each in scene.traced if each.id == attempt.parent]
    return call.attributes["winnow.shard"] if call.name == "shard retrieve" else None


def _given_up(spans: list[RecordedSpan], attempt: RecordedSpan) -> bool:
    return any(each.parent == attempt.id and GIVEN_UP in each.attributes for each in spans)
