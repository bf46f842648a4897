"""`/mcp` of a front, called by the official client and by hand."""

import asyncio
import json
from typing import Any

import httpx
import pytest
from fake_text_reader import FakeTextReader
from http_front import METADATA, HttpFront
from mcp_clients import http_agent, text_of
from passage_front import PassageFront
from structlog.testing import capture_logs
from tenacious import LONG, happens

from winnow.deadline import Deadline
from winnow.domain.answered import Answered
from winnow.domain.question import AnswerRequest
from winnow.errors import OverloadedError
from winnow.inference.fair_threads import FairThreads
from winnow.keys.gate import Gate, header_gate
from winnow.keys.key import Key, Scope
from winnow.keys.token import digest_of, new_token
from winnow.stateless.http.call import OperationLimits
from winnow.stateless.http.reading import read_operations
from winnow.stateless.http.stored_passages import passage_operations
from winnow.stateless.mcp.endpoint import MAX_BODY_BYTES
from winnow.stateless.passages.servicer import PassageMessages
from winnow.stateless.reading.servicer import ReadMessages

MODES = ["legacy", "auto"]
"""The handshake of the versions until 2025, and the newest version."""
HEADERS = {"accept": "application/json, text/event-stream"}


def asking(question: str = "Who?") -> dict[str, Any]:
    params = {"name": "ask", "arguments": {"question": question}}
    return {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}


async def post(client: httpx.AsyncClient, message: Any, **headers: str) -> httpx.Response:
    return await client.post("/mcp", json=message, headers={**HEADERS, **headers})


def url(front: HttpFront) -> str:
    return f"http://{front.address}/mcp"


async def ask(agent: Any, question: str = "Who?") -> Any:
    return await agent.call_tool("ask", {"question": question})


@pytest.mark.parametrize("mode", MODES)
async def test_an_agent_asks_over_http(mode: str) -> None:
    """The call is counted and logged as a question, with the id of its HTTP request."""
    front = HttpFront()
    with capture_logs() as logged:
        async with front.serving(), http_agent(url(front), mode=mode) as agent:
            result = await ask(agent)
    assert result.structured_content["answer"] == "Marta Quendelheim"
    assert front.calls_ended("Answer", "OK") == 1
    assert front.calls_ended("Mcp", "OK") >= 2
    assert "Answer" in [line["method"] for line in logged if line["event"] == "call"]


async def test_a_message_with_two_tenants_is_refused() -> None:
    """A proxy may add its header behind that of the caller."""
    named = [*HEADERS.items(), ("x-winnow-tenant", "beta"), ("x-winnow-tenant", "acme")]
    async with HttpFront().serving() as client:
        reply = await client.post("/mcp", json=asking(), headers=named)
    assert (reply.status_code, reply.json()["violations"][0]["field"]) == (400, "x-winnow-tenant")


async def test_the_calls_of_an_agent_are_for_the_index_of_its_address() -> None:
    front, asked = HttpFront(), list[str]()
    answer = front.core.answer

    async def record(request: AnswerRequest, deadline: Deadline, client: str = "") -> Answered:
        asked.append(request.index)
        return await answer(request, deadline, client)

    front.core.answer = record  # type: ignore[method-assign]
    async with front.serving():
        for path in ("/mcp", "/v1/indexes/docs/mcp"):
            async with http_agent(f"http://{front.address}{path}") as agent:
                await ask(agent)
    assert asked == ["", "docs"]


@pytest.mark.parametrize("mode", MODES)
async def test_search_fetch_and_resources_call_the_passage_core(mode: str) -> None:
    passages = PassageFront(ids=[f"a.md#{number}" for number in range(3)])
    passages.put("b.md#0", document="b.md")
    front, threads = HttpFront(), FairThreads(1, "x")
    front.stack.callback(threads.close)
    messages = PassageMessages(passages.core, threads)
    front.add(passage_operations(messages, OperationLimits(LONG)))
    async with front.serving(), http_agent(url(front), mode=mode) as agent:
        fetched = await agent.call_tool("fetch", {"id": "b.md#0"})
        listed = await agent.list_resources()
        (content,) = (await agent.read_resource("winnow://passages/a.md%231")).contents
    assert fetched.structured_content["document"] == "winnow://documents/b.md"
    assert "winnow://documents/b.md" in [each.uri for each in listed.resources]
    assert getattr(content, "text", "") == "some words"
    assert front.calls_ended("ListDocuments", "OK") == 1


def keyed_front() -> tuple[HttpFront, dict[str, str]]:
    """Returns a front with keys, and the header of each key by its name."""
    tokens = {"alice": new_token(), "feeder": new_token()}
    scopes = {"alice": Scope.ASK, "feeder": Scope.FEED}
    keys = [
        Key(name=name, digest=digest_of(token), scopes=frozenset([scopes[name]]))
        for name, token in tokens.items()
    ]
    front = HttpFront(gate=header_gate(Gate(keys)))
    return front, {name: f"Bearer {token}" for name, token in tokens.items()}


async def test_a_key_is_needed_and_names_the_client() -> None:
    front, tokens = keyed_front()
    async with front.serving() as client:
        missing = await post(client, asking())
        lacking = await post(client, asking(), authorization=tokens["feeder"])
        async with http_agent(url(front), {"authorization": tokens["alice"]}) as agent:
            assert not (await ask(agent)).is_error
    assert (missing.status_code, missing.headers["www-authenticate"]) == (401, "Bearer")
    assert lacking.status_code == 403
    assert front.answerer.clients == ["alice"]


async def test_a_key_to_read_texts_calls_only_that_tool() -> None:
    """A front without a reader has no such tool."""
    token = new_token()
    key = Key(name="reader", digest=digest_of(token), scopes=frozenset([Scope.READ]))
    front, reader = HttpFront(gate=header_gate(Gate([key]))), FakeTextReader()
    assert [each.name for each in (await tools_of(HttpFront())).tools] == ["ask"]
    threads = FairThreads(1, "x")
    front.stack.callback(threads.close)
    front.add(read_operations(ReadMessages(reader, threads), OperationLimits(LONG)))
    headers = {"authorization": f"Bearer {token}"}
    async with front.serving(), http_agent(url(front), headers) as agent:
        texts = ["It was built by Ada.", "It is old."]
        read = await agent.call_tool("read", {"question": "Who is Ada", "texts": texts})
        refused = await ask(agent)
    assert read.structured_content["answers"][0]["answer"] == "Ada"
    assert reader.clients == ["reader"]
    assert refused.is_error
    assert "lacks the scope 'ask'" in text_of(refused)


async def tools_of(front: HttpFront) -> Any:
    async with front.serving(), http_agent(url(front)) as agent:
        return await agent.list_tools()


async def test_the_caller_of_a_request_is_not_that_of_the_next_one() -> None:
    """The package runs handlers in its own tasks: each has the client of its request."""
    front = HttpFront()
    async with front.serving() as client:
        for name in ("bob", "carol"):
            await post(client, asking(), **{"x-winnow-client": name})
    assert front.answerer.clients == ["bob", "carol"]


async def test_the_timeout_of_the_request_is_that_of_its_calls() -> None:
    front = HttpFront()
    async with front.serving() as client:
        reply = await post(client, asking("wait"), **{"x-winnow-timeout": "0.05"})
    result = reply.json()["result"]
    assert result["isError"]
    assert "deadline" in result["content"][0]["text"]
    assert front.calls_ended("Answer", "DEADLINE_EXCEEDED") == 1


async def test_a_full_front_says_when_to_try_again() -> None:
    front = HttpFront()
    front.answerer.fails = OverloadedError("the cluster is full", 0.5)
    async with front.serving(), http_agent(url(front)) as agent:
        result = await ask(agent)
    assert result.is_error
    assert text_of(result) == "the cluster is full (try again in 0.5 s)"


@pytest.mark.parametrize("version", ["2025-06-18", ""])
async def test_a_client_that_disconnects_cancels_its_question(version: str) -> None:
    front = HttpFront()
    headers = {"mcp-protocol-version": version} if version else {}
    async with front.serving() as client:
        asked = asyncio.create_task(post(client, asking("wait"), **headers))
        await happens(lambda: bool(front.answerer.asked), LONG)
        asked.cancel()
        await happens(lambda: front.answerer.cancelled == 1, LONG)
        assert (await post(client, asking())).status_code == 200


async def test_long_metadata_is_no_obstacle() -> None:
    """Such answers are serialised once for all callers."""
    front = HttpFront(packs=True)
    async with front.serving(), http_agent(url(front)) as agent:
        result = await ask(agent, "long")
    assert len(json.dumps(METADATA)) > 1_000
    assert result.structured_content["answer"] == "Marta Quendelheim"


async def test_details_of_a_bug_stay_in_the_log() -> None:
    front = HttpFront()
    with capture_logs() as logged:
        async with front.serving(), http_agent(url(front)) as agent:
            result = await ask(agent, "break")
    assert result.is_error
    assert "secret" not in text_of(result)
    assert any("a secret of this machine" in str(line.get("error")) for line in logged)


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"origin": "https://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": "http://[::1"}, 403),
        ({"origin": "http://203.0.113.5"}, 403),
        ({"origin": "http://localhost:6274"}, 200),
        ({"origin": "https://agents.example"}, 200),
        ({"host": "evil.example"}, 421),
        ({"content-type": "text/plain"}, 415),
        ({"accept": "text/html"}, 406),
        ({"mcp-protocol-version": "1999-01-01"}, 400),
    ],
)
async def test_requests_of_pages_of_other_sites_are_refused(
    headers: dict[str, str], status: int
) -> None:
    async with HttpFront(http_hosts=["agents.example"]).serving() as client:
        reply = await client.post(
            "/mcp",
            content=json.dumps(asking()),
            headers={"content-type": "application/json", **HEADERS, **headers},
        )
    assert reply.status_code == status


async def test_there_are_no_sessions_and_no_streams() -> None:
    """So each request of a client may reach another front."""
    async with HttpFront().serving() as client:
        reply = await post(client, asking())
        assert "mcp-session-id" not in reply.headers
        assert reply.headers["content-type"] == "application/json"
        for verb in ("GET", "DELETE"):
            refused = await client.request(verb, "/mcp", headers=HEADERS)
            assert (refused.status_code, refused.headers["allow"]) == (405, "POST")


async def test_a_notification_is_acknowledged() -> None:
    async with HttpFront().serving() as client:
        said = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        reply = await post(client, said)
    assert (reply.status_code, reply.content) == (202, b"")


async def test_a_message_that_is_too_large_is_refused() -> None:
    async with HttpFront().serving() as client:
        reply = await post(client, asking("x" * MAX_BODY_BYTES))
    assert reply.status_code == 413


async def test_without_the_package_the_path_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("winnow.stateless.composing.http.find_spec", lambda _name: None)
    async with HttpFront().serving() as client:
        reply = await post(client, asking())
    assert reply.status_code == 404
    assert "pip install 'winnow-qa[mcp]'" in reply.json()["detail"]
