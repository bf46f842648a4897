"""Traces of calls by HTTP."""

import asyncio

import httpx
import pytest
from http_front import HttpFront
from tenacious import happens
from traced import Traced

from winnow.telemetry.tracing.traceparent import trace_headers

CALLER = dict(trace_headers(7, 5))
ASKED = {"question": "Who plays the xylophone?"}


@pytest.fixture
def traced() -> Traced:
    return Traced(share=0.0)


@pytest.fixture
def front(traced: Traced) -> HttpFront:
    return HttpFront(tracer=traced.tracer)


async def test_a_call_is_a_part_of_its_callers_trace(
    client: httpx.AsyncClient, traced: Traced
) -> None:
    reply = await client.post("/v1/answer", json=ASKED, headers=CALLER)
    call = traced.one("POST /v1/answer")
    assert (call.trace.id, call.parent, call.fault) == (7, 5, "")
    assert call.attributes["winnow.request_id"] == reply.headers["x-request-id"]
    assert traced.above(traced.one("admit")) == ["POST /v1/answer"]
    assert "xylophone" not in "".join(f"{each.name}{each.attributes}" for each in traced)


async def test_questions_of_one_request_are_parts_of_it(
    client: httpx.AsyncClient, traced: Traced
) -> None:
    await client.post("/v1/answers", json={"requests": [ASKED] * 3}, headers=CALLER)
    assert [traced.above(each) for each in traced.named("admit")] == [["POST /v1/answers"]] * 3


async def test_a_call_that_goes_wrong_has_failed(client: httpx.AsyncClient, traced: Traced) -> None:
    await client.post("/v1/answer", json={"question": "break"}, headers=CALLER)
    assert traced.one("POST /v1/answer").fault == "INTERNAL"


async def test_a_call_whose_caller_goes_has_not_failed(
    client: httpx.AsyncClient, front: HttpFront, traced: Traced
) -> None:
    asked = {"question": "wait"}
    asking = asyncio.create_task(client.post("/v1/answer", json=asked, headers=CALLER))
    await happens(lambda: bool(front.answerer.asked))
    asking.cancel()
    await asyncio.wait([asking])
    await happens(lambda: bool(traced.named("POST /v1/answer")))
    call = traced.one("POST /v1/answer")
    assert (call.attributes["rpc.grpc.status_code"], call.fault) == (1, "")


async def test_what_nobody_traces_is_not_traced(client: httpx.AsyncClient, traced: Traced) -> None:
    await client.post("/v1/answer", json=ASKED)
    assert traced == []


async def test_the_metrics_lead_to_the_trace(client: httpx.AsyncClient) -> None:
    await client.post("/v1/answer", json=ASKED, headers=CALLER)
    page = await client.get("/metrics", headers={"accept": "application/openmetrics-text"})
    assert page.headers["content-type"].startswith("application/openmetrics-text")
    assert f'trace_id="{7:032x}"' in page.text
    assert f'trace_id="{7:032x}"' not in (await client.get("/metrics")).text
