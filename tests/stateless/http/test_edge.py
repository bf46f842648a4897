"""The checks that every HTTP request passes."""

import asyncio
import gzip
import random

import httpx
import pytest
from http_front import HttpFront, asking, wire
from manual_clock import ManualClock
from structlog.contextvars import merge_contextvars
from structlog.testing import capture_logs
from tenacious import LONG, happens

from winnow.errors import NotFoundError, UnavailableError
from winnow.keys.gate import Gate, header_gate
from winnow.keys.key import Key, Scope
from winnow.keys.token import digest_of, new_token
from winnow.policy.rates import Rate
from winnow.stateless.http.headers import Headers
from winnow.telemetry.tracing.recorded import RecordedSpan
from winnow.telemetry.tracing.tracer import SamplingTracer

ASKED = {"question": "Who won?"}


async def test_every_reply_has_an_id_and_says_how_it_may_be_used(
    client: httpx.AsyncClient,
) -> None:
    for path in ("/livez", "/v1/answer", "/nothing", "/docs"):
        headers = (await client.get(path)).headers
        assert headers["x-request-id"]
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["cache-control"] == "no-store"
        assert headers["content-security-policy"].startswith("default-src 'none'")
        assert headers["date"].endswith("GMT")


async def test_a_path_that_is_not_there_is_a_problem(client: httpx.AsyncClient) -> None:
    reply = await client.get("/v1/question?secret=1")
    assert (reply.status_code, reply.headers["content-type"]) == (404, "application/problem+json")
    assert reply.json()["detail"] == "unknown path '/v1/question': see /docs"


@pytest.mark.parametrize(
    ("path", "setting"),
    [
        ("/v1/passages", "--http-feed"),
        ("/v1/passages:delete", "--http-feed"),
        ("/v1/predict", "--heads"),
        ("/v1/heads", "--heads"),
        ("/v1/indexes/docs/passages:delete", "--http-feed"),
    ],
)
async def test_a_call_that_is_switched_off_names_its_setting(
    path: str, setting: str, client: httpx.AsyncClient
) -> None:
    reply = await client.post(path, json={})
    assert (reply.status_code, reply.json()["code"]) == (404, "NOT_FOUND")
    assert f"this front does not serve '{path}': it needs " in reply.json()["detail"]
    assert setting in reply.json()["detail"]


async def test_a_path_that_no_index_has_names_the_path_to_use(client: httpx.AsyncClient) -> None:
    reply = await client.post("/v1/indexes/docs/predict", json={})
    assert reply.json()["detail"].endswith("docs/predict': /v1/predict is for no index")


async def test_a_path_with_a_slash_too_many_leads_nowhere_else(client: httpx.AsyncClient) -> None:
    """Behind a proxy that ends TLS, a redirect would lead to plain text, and the key with it."""
    assert (await client.post("/v1/answer/", json=ASKED)).status_code == 404


async def test_another_method_is_a_problem_that_names_the_right_one(
    client: httpx.AsyncClient,
) -> None:
    reply = await client.get("/v1/answer")
    assert (reply.status_code, reply.headers["allow"]) == (405, "POST")
    assert reply.json()["status"] == 405
    assert reply.json()["detail"].endswith(": use POST")


@pytest.mark.parametrize("kind", ["", "text/plain", "application/x-www-form-urlencoded"])
async def test_a_body_that_pages_of_other_sites_may_send_is_refused(
    kind: str, client: httpx.AsyncClient
) -> None:
    headers = {"content-type": kind} if kind else {}
    body = b'{"question": "Who?"}'
    reply = await client.post("/v1/answer", content=body, headers=headers)
    assert reply.status_code == 415
    assert reply.json()["violations"][0]["field"] == "content-type"


async def test_a_body_that_is_compressed_is_refused(client: httpx.AsyncClient) -> None:
    headers = {"content-type": "application/json", "content-encoding": "gzip"}
    reply = await client.post("/v1/answer", content=gzip.compress(b"0" * 10**7), headers=headers)
    assert (reply.status_code, reply.json()["violations"][0]["field"]) == (415, "content-encoding")


@pytest.mark.parametrize("size", [33_000, 900_000, 50_000_000])
async def test_a_body_that_is_too_large_is_refused_and_its_sender_reads_why(
    size: int, client: httpx.AsyncClient
) -> None:
    reply = await client.post("/v1/answer", json={"question": "?" * size})
    assert (reply.status_code, reply.headers["connection"]) == (413, "close")
    assert "has more than 32768 bytes" in reply.json()["detail"]


async def test_a_body_without_an_end_is_cut_off(front: HttpFront, client: object) -> None:
    async with wire(front.address) as line:
        line.send("POST /v1/answer HTTP/1.1\r\nhost: localhost\r\ntransfer-encoding: chunked\r\n")
        line.send("content-type: application/json\r\n\r\n")
        for _ in range(40):
            line.send(b"10000\r\n" + b" " * 65_536 + b"\r\n")
        await line.closed()
        assert front.calls_ended("Answer", "INVALID_ARGUMENT") == 1


async def test_headers_without_an_end_are_refused(front: HttpFront, client: object) -> None:
    async with wire(front.address) as line:
        line.send("GET /livez HTTP/1.1\r\nx: " + "a" * 20_000)
        assert (await line.reader.readline()).startswith(b"HTTP/1.1 400")
        await line.closed()


@pytest.mark.parametrize(("size", "code"), [(16_384, 200), (16_385, 400), (20_000, 400)])
async def test_headers_beyond_16_kb_are_refused_also_if_they_come_at_once(
    front: HttpFront, client: object, size: int, code: int
) -> None:
    head = "GET /livez HTTP/1.1\r\nhost: localhost\r\nx: "
    async with wire(front.address) as line:
        line.send(f"{head}{'a' * (size - len(head) - 4)}\r\n\r\n")
        assert (await line.reply())[0] == code


@pytest.mark.parametrize("size", [0, 2])
async def test_two_headers_that_say_how_long_a_body_is_are_refused(
    front: HttpFront, client: object, size: int
) -> None:
    """A proxy that believes the other one would take what follows for another request."""
    async with wire(front.address) as line:
        line.send("POST /v1/answer HTTP/1.1\r\nhost: localhost\r\n")
        line.send(f"content-length: {size}\r\nTransfer-Encoding: chunked\r\n")
        line.send("content-type: application/json\r\n\r\n2\r\n{}\r\n0\r\n\r\n")
        code, *_ = await line.reply()
        assert code == 400
        await line.closed()
    assert not front.answerer.asked


async def test_what_is_no_http_is_answered_with_an_id_that_the_log_has(
    front: HttpFront, client: object
) -> None:
    with capture_logs([merge_contextvars]) as logged:
        async with wire(front.address) as line:
            line.send("nonsense\r\n\r\n")
            code, headers, problem = await line.reply()
    assert (code, headers["x-content-type-options"]) == (400, "nosniff")
    assert headers["x-request-id"] == problem["requestId"]
    (refused,) = [each for each in logged if each["event"] == "request refused"]
    assert refused["request_id"] == problem["requestId"]


async def test_a_half_sent_body_holds_up_nobody(front: HttpFront, client: object) -> None:
    async with wire(front.address) as half, wire(front.address) as whole:
        half.send(asking("Who?")[:-3])
        whole.send(asking("Who?"))
        assert (await whole.reply())[0] == 200
    assert len(front.answerer.asked) == 1


async def test_several_requests_of_one_connection_are_answered_in_turn(
    front: HttpFront, client: object
) -> None:
    async with wire(front.address) as line:
        line.send(asking("one") + asking("two"))
        assert [(await line.reply())[0] for _ in range(2)] == [200, 200]
        line.send(asking("three"))
        assert (await line.reply())[0] == 200
    assert [each.text for each in front.answerer.asked] == ["one", "two", "three"]


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example"])
async def test_a_name_that_leads_here_by_a_trick_is_refused(
    host: str, client: httpx.AsyncClient
) -> None:
    """As a page of another site has it after DNS rebinding."""
    reply = await client.post("/v1/answer", json=ASKED, headers={"host": host})
    assert reply.status_code == 421


async def test_a_name_that_leads_to_a_front_that_listens_everywhere_is_refused() -> None:
    """A client on the same network, such as a browser with a page of another site."""
    front = HttpFront(http_listen="0.0.0.0:0")
    async with front.serving() as client:
        refused = await client.post("/v1/answer", json=ASKED, headers={"host": "evil.example"})
        answered = await client.post("/v1/answer", json=ASKED, headers={"host": "10.0.0.7"})
    assert (refused.status_code, answered.status_code) == (421, 200)


async def test_a_name_that_was_allowed_may_be_used() -> None:
    front = HttpFront(http_hosts=["qa.example"])
    async with front.serving() as client:
        reply = await client.post("/v1/answer", json=ASKED, headers={"host": "QA.example:443"})
    assert reply.status_code == 200


async def test_a_key_to_ask_has_heads_only_if_it_may_predict() -> None:
    """Over one connection: a caller is not taken for the one before it."""
    tokens = {"asker": new_token(), "both": new_token()}
    scopes = {"asker": {Scope.ASK}, "both": {Scope.ASK, Scope.PREDICT}}
    keys = [
        Key(name=name, digest=digest_of(tokens[name]), scopes=frozenset(scopes[name]))
        for name in tokens
    ]
    front = HttpFront(gate=header_gate(Gate(keys)))
    said = []
    async with front.serving() as client:
        for name in ("both", "asker"):
            sent = {"authorization": f"Bearer {tokens[name]}"}
            asked = {**ASKED, "heads": ["intent"]}
            reply = await client.post("/v1/answer", json=asked, headers=sent)
            said.append((reply.status_code, reply.json()["code"]))
    # the key for both gets as far as a front that serves no heads
    assert said == [(400, "INVALID_ARGUMENT"), (403, "PERMISSION_DENIED")]


async def test_details_are_for_keys_of_administrators() -> None:
    tokens = {"asker": new_token(), "admin": new_token()}
    scopes = {"asker": {Scope.ASK}, "admin": {Scope.ASK, Scope.ADMIN}}
    keys = [
        Key(name=name, digest=digest_of(tokens[name]), scopes=frozenset(scopes[name]))
        for name in tokens
    ]
    front = HttpFront(gate=header_gate(Gate(keys)))
    front.answerer.fails = UnavailableError("secret-host is gone").with_public("a node is gone")
    said = {}
    async with front.serving() as client:
        for name in ("admin", "asker"):
            sent = {"authorization": f"Bearer {tokens[name]}"}
            reply = await client.post("/v1/answer", json=ASKED, headers=sent)
            said[name] = reply.json()["detail"]
    assert said == {"admin": "secret-host is gone", "asker": "a node is gone"}


async def test_a_gate_says_who_a_caller_is_and_what_it_may_do() -> None:
    seen = []

    def gate(scope: str, headers: Headers, calls: int = 1, begun: int = 0) -> str:
        seen.append((scope, calls, begun))
        if dict(headers).get("authorization") != "Bearer right":
            raise NotFoundError("no such key")
        return "its key"

    front = HttpFront(gate=gate)
    async with front.serving() as client:
        refused = [
            await client.post("/v1/answer", json=ASKED),
            await client.post("/v1/answers", json={"requests": [ASKED] * 3}),
            await client.get("/metrics"),
        ]
        right = {"authorization": "Bearer right", "x-winnow-client": "another"}
        allowed = await client.post("/v1/answer", json=ASKED, headers=right)
        many = {"requests": [ASKED] * 3}
        assert (await client.post("/v1/answers", json=many, headers=right)).status_code == 200
        probed = [(await client.get(path)).status_code for path in ("/livez", "/readyz")]
    assert [each.status_code for each in refused] == [404, 404, 404]
    assert (allowed.status_code, front.answerer.clients) == (200, ["its key"] * 4)
    refused_of = [("ask", 1, 0), ("ask", 1, 0), ("admin", 1, 0)]
    assert seen == [*refused_of, ("ask", 1, 0), ("ask", 1, 0), ("ask", 2, 1)]
    assert probed == [200, 200]


async def test_a_key_may_ask_more_at_once_than_its_burst_and_waits_for_that_later() -> None:
    clock = ManualClock()
    key = Key(
        name="alice", digest=digest_of("wnw_alice"), scopes=frozenset({Scope.ASK}), rate=Rate(1, 5)
    )
    front = HttpFront(gate=header_gate(Gate([key], clock)))
    many = {"requests": [ASKED] * 20}
    async with front.serving() as client:
        client.headers["authorization"] = "Bearer wnw_alice"
        assert (await client.post("/v1/answers", json=many)).status_code == 200
        late = await client.post("/v1/answer", json=ASKED)
        assert (late.status_code, late.headers["retry-after"]) == (429, "16")
        clock.advance(20)
        assert (await client.post("/v1/answer", json=ASKED)).status_code == 200
        early = await client.post("/v1/answers", json=many)
        assert (early.status_code, early.headers["retry-after"]) == (429, "2")
        clock.advance(early.json()["retryAfterSeconds"])
        assert (await client.post("/v1/answers", json=many)).status_code == 200


async def test_metrics_count_calls_as_those_by_grpc_are_counted(
    front: HttpFront, client: httpx.AsyncClient
) -> None:
    await client.post("/v1/answer", json=ASKED)
    page = (await client.get("/metrics")).text
    assert 'winnow_request_seconds_count{method="Answer",status="OK"} 1.0' in page
    assert "winnow_http_connections 1.0" in page
    assert "winnow_build_info" in page


async def test_a_call_is_a_part_of_the_trace_of_its_caller() -> None:
    spans: list[RecordedSpan] = []
    front = HttpFront(tracer=SamplingTracer(spans.append, 0.0, random.Random(1)))
    headers = {"traceparent": f"00-{'ab' * 16}-{'cd' * 8}-01"}
    async with front.serving() as client:
        await client.post("/v1/answer", json=ASKED, headers=headers)
        await client.post("/v1/answer", json=ASKED)
        openmetrics = {"accept": "application/openmetrics-text"}
        page = (await client.get("/metrics", headers=openmetrics)).text
    whole = [span for span in spans if span.name == "POST /v1/answer"]
    assert [span.trace_id for span in whole] == ["ab" * 16], "nobody else is traced"
    assert f'trace_id="{"ab" * 16}"' in page


async def test_the_metrics_of_the_process_are_told_once() -> None:
    front = HttpFront(metrics_listen="127.0.0.1:1")
    async with front.serving() as client:
        assert "winnow_build_info" not in (await client.get("/metrics")).text


async def test_nothing_is_asked_before_the_front_is_ready() -> None:
    front = HttpFront()
    front.ready = False
    async with front.serving() as client:
        assert (await client.get("/livez")).status_code == 200
        ready = await client.get("/readyz")
        assert (ready.status_code, ready.json()) == (503, {"status": "starting"})
        assert (await client.post("/v1/answer", json=ASKED)).status_code == 503
        await front.server.set_serving(True)
        assert (await client.get("/readyz")).status_code == 200
        assert (await client.post("/v1/answer", json=ASKED)).status_code == 200


async def test_a_front_that_leaves_still_answers_and_sends_its_callers_elsewhere(
    front: HttpFront, client: httpx.AsyncClient
) -> None:
    await front.server.set_serving(False)
    ready = await client.get("/readyz")
    assert (ready.status_code, ready.json()) == (503, {"status": "leaving"})
    reply = await client.post("/v1/answer", json=ASKED)
    assert (reply.status_code, reply.headers["connection"]) == (200, "close")


async def test_draining_waits_for_requests_in_hand_and_takes_no_more(
    front: HttpFront, client: httpx.AsyncClient
) -> None:
    async with wire(front.address) as idle, wire(front.address) as asks:
        asks.send(asking("wait", headers="x-winnow-timeout: 60\r\n"))
        await happens(lambda: bool(front.answerer.asked), LONG)
        draining = asyncio.create_task(front.server.drain(LONG))
        await idle.closed()
        with pytest.raises(ConnectionRefusedError):
            async with wire(front.address):
                pass
        assert not draining.done()
        front.answerer.go_on.set()
        status, headers, _ = await asks.reply()
        assert (status, headers["connection"]) == (200, "close")
        await asks.closed()
        await asyncio.wait_for(draining, LONG)


async def test_what_is_not_done_in_the_grace_is_given_up(
    front: HttpFront, client: httpx.AsyncClient
) -> None:
    async with wire(front.address) as asks:
        asks.send(asking("wait", headers="x-winnow-timeout: 60\r\n"))
        await happens(lambda: bool(front.answerer.asked), LONG)
        await asyncio.wait_for(front.server.drain(0.01), LONG)
        assert front.answerer.cancelled == 1
        await asks.closed()
