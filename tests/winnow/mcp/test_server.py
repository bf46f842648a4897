"""The tools and resources of the MCP server, called by the official client in this process."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import Any

import jsonschema
import pytest
from fake_index import FakeIndex, passage
from mcp.client.client import Client
from mcp.shared.exceptions import MCPError
from mcp_clients import text_of
from structlog.testing import capture_logs
from tenacious import LONG

from winnow.errors import InvalidRequestError, OverloadedError, UnavailableError, Violation
from winnow.mcp.documents import PART_CHARACTERS
from winnow.mcp.server import AgentIndex, open_server


def agent_of(index: FakeIndex) -> AbstractAsyncContextManager[Client]:
    return Client(open_server(AgentIndex(api=index, timeout=LONG)))


@pytest.fixture
def index() -> FakeIndex:
    long = "".join(f"sentence {number}. " for number in range(5_000))
    parts = [
        passage(
            f"long.md#{number}",
            long[start : start + 10_000],
            document="long.md",
            start=start,
            end=start + 10_000,
        )
        for number, start in enumerate(range(0, len(long), 10_000))
    ]
    return FakeIndex(
        passages=[
            passage("policy.pdf#0", "Main.", document="policy.pdf", page=4, url="https://x.org/p"),
            passage("plain"),
            *parts,
        ]
    )


class Agent:
    """Opens a client for each request, since the task that opens a client must close it."""

    def __init__(self, index: FakeIndex) -> None:
        self._index = index

    def __getattr__(self, name: str) -> Callable[..., Any]:
        async def requested(*arguments: Any, **options: Any) -> Any:
            async with agent_of(self._index) as client:
                try:
                    return await getattr(client, name)(*arguments, **options)
                except MCPError as error:
                    failure = error
            raise failure  # within the block it would be in a group of errors

        return requested


@pytest.fixture
def agent(index: FakeIndex) -> Agent:
    return Agent(index)


Call = Callable[..., Any]


@pytest.fixture
def call(agent: Agent) -> Call:
    """Calls a tool, and returns its structured result."""

    async def called(name: str, **arguments: Any) -> Any:
        result = await agent.call_tool(name, arguments)
        assert not result.is_error, text_of(result)
        return result.structured_content

    return called


async def test_tools_only_read_and_describe_their_results(agent: Agent) -> None:
    """Every argument and every field of a result has a schema."""
    tools = (await agent.list_tools()).tools
    assert [each.name for each in tools] == ["ask", "search", "fetch", "read"]
    for tool in tools:
        assert tool.annotations is not None
        assert tool.annotations.read_only_hint
        assert not tool.annotations.open_world_hint
        assert all("description" in each for each in tool.input_schema["properties"].values()), (
            tool.name
        )
    arguments: dict[str, dict[str, Any]] = {
        "ask": {"question": "Who?"},
        "search": {"query": "x"},
        "fetch": {"id": "plain"},
        "read": {"question": "Who?", "texts": ["by Ada"]},
    }
    for tool in tools:
        result = await agent.call_tool(tool.name, arguments[tool.name])
        assert tool.output_schema is not None
        jsonschema.validate(result.structured_content, tool.output_schema)


async def test_an_answer_has_its_sentence_confidence_citation_and_coverage(
    index: FakeIndex, call: Call
) -> None:
    best = index.answer.answers[0]
    best.source.document, best.source.page = "cafes.pdf", 4
    answer = await call("ask", question="Who opened the café?", candidates=5)
    assert answer["answer"] == best.shown_text or best.text
    assert answer["sentence"] in best.passage.text
    assert answer["confidence"] is not None
    assert answer["coverage"] == {
        "complete": False,
        "passages_known": 12,
        "passages_searched": 7,
    }
    assert any("5 of 12 passages were not searched" in each for each in answer["notes"])
    assert index.requests[-1].answers == 5


async def test_without_a_likely_answer_there_are_only_candidates(
    index: FakeIndex, call: Call
) -> None:
    index.answer.has_answer = False
    answer = await call("ask", question="Who?")
    assert (answer["has_answer"], answer["answer"], answer["id"]) == (False, None, None)
    assert len(answer["candidates"]) == len(index.answer.answers)


async def test_search_and_fetch_are_as_deep_research_clients_expect(call: Call) -> None:
    """An id that search returns can be fetched; each has a title and a URL."""
    found = await call("search", query="policy", limit=2)
    first, second = found["results"]
    assert (first["id"], first["title"], first["url"]) == (
        "policy.pdf#0",
        "Title",
        "https://x.org/p",
    )
    assert first["citation"] == "policy.pdf, page 4"
    assert second["url"] == "winnow://passages/plain"
    fetched = await call("fetch", id=first["id"])
    assert {"id", "title", "text", "url", "metadata"} <= set(fetched)
    assert (fetched["text"], fetched["metadata"]["page"]) == ("Main.", 4)


async def test_a_long_document_is_fetched_in_parts(call: Call) -> None:
    """By the URI that its passages name, or by its name; each part names the next one."""
    document = (await call("fetch", id="long.md#3"))["document"]
    parts, wanted = [], document
    while wanted:
        part = await call("fetch", id=wanted)
        parts.append(part["text"])
        wanted = part["next"]
    assert list(map(len, parts))[:-1] == [PART_CHARACTERS] * (len(parts) - 1)
    assert "".join(parts) == "".join(f"sentence {number}. " for number in range(5_000))
    assert (await call("fetch", id="long.md"))["text"] == parts[0]


async def test_texts_of_the_agent_are_read(index: FakeIndex, call: Call) -> None:
    """The answers name their texts, and are the exact words of them."""
    result = await call("read", question="Who built it?", texts=["It is old", "It was by Ada"])
    assert [(each["text"], each["answer"]) for each in result["answers"]] == [
        (1, "Ada"),
        (0, "old"),
    ]
    assert result["answers"][0]["sentence"] == "It was by Ada"
    assert index.requests[-1].answers == 2


@pytest.mark.parametrize("wanted", ["none", "winnow://documents/none", "winnow://passages/none"])
async def test_a_text_that_the_index_lacks_is_an_error_that_says_what_to_do(
    wanted: str, agent: Agent
) -> None:
    result = await agent.call_tool("fetch", {"id": wanted})
    assert result.is_error
    assert "'none'" in text_of(result)
    assert "use an id that search has returned" in text_of(result)


async def test_an_index_without_documents_has_none(index: FakeIndex, agent: Agent) -> None:
    unknown = InvalidRequestError(Violation("filter", "there is no field 'document'"))
    index.fails = {"ListPassages": unknown}
    result = await agent.call_tool("fetch", {"id": "none"})
    assert "the index has no document 'none'" in text_of(result)


async def test_documents_are_resources_page_by_page(index: FakeIndex) -> None:
    index.page_size = 1
    async with agent_of(index) as agent:
        first = await agent.list_resources()
        assert first.next_cursor is not None
        second = await agent.list_resources(cursor=first.next_cursor)
        uris = [each.uri for each in (*first.resources, *second.resources)]
        assert "winnow://documents/long.md" in uris
        (content,) = (await agent.read_resource("winnow://documents/long.md")).contents
        assert content.meta == {"next": f"winnow://documents/long.md?start={PART_CHARACTERS}"}


async def test_a_passage_is_a_resource_of_a_template(agent: Agent) -> None:
    templates = (await agent.list_resource_templates()).resource_templates
    assert [each.uri_template for each in templates] == [
        "winnow://documents/{+name}",
        "winnow://passages/{+name}",
    ]
    (content,) = (await agent.read_resource("winnow://passages/policy.pdf%230")).contents
    assert getattr(content, "text", "") == "Main."


@pytest.mark.parametrize("uri", ["winnow://documents/none", "file:///etc/passwd"])
async def test_an_unknown_resource_is_an_error_of_the_protocol(uri: str, agent: Agent) -> None:
    with pytest.raises(MCPError, match=r"has no document|unknown URI"):
        await agent.read_resource(uri)


async def test_an_error_names_every_wrong_argument(agent: Agent) -> None:
    result = await agent.call_tool("search", {"limit": 500, "k": 3})
    assert result.is_error
    said = text_of(result)
    assert "query: is required" in said
    assert "limit: " in said
    assert "not '500'" in said
    assert "k: is not an argument" in said


@pytest.mark.parametrize(
    ("texts", "problem"),
    [
        ([], "texts: has 0 items, at least 1 needed"),
        (["a"] * 101, "texts: has 101 items, at most 100 allowed"),
    ],
)
async def test_a_list_of_the_wrong_length_is_an_error_with_the_limit(
    agent: Agent, texts: list[str], problem: str
) -> None:
    result = await agent.call_tool("read", {"question": "Who?", "texts": texts})
    assert text_of(result) == problem


async def test_errors_of_the_index_have_the_names_of_the_arguments(
    index: FakeIndex, agent: Agent
) -> None:
    index.fails = {"SearchPassages": InvalidRequestError(Violation("question", "is empty"))}
    assert text_of(await agent.call_tool("search", {"query": ""})) == "query: is empty"


async def test_overload_says_when_to_try_again(index: FakeIndex, agent: Agent) -> None:
    index.fails = {"Answer": OverloadedError("the cluster is full", 2.5)}
    result = await agent.call_tool("ask", {"question": "Who?"})
    assert result.is_error
    assert text_of(result) == "the cluster is full (try again in 2.5 s)"


async def test_a_resource_that_cannot_be_read_says_why(index: FakeIndex, agent: Agent) -> None:
    index.fails = {"ListDocuments": UnavailableError("no shard answered")}
    with pytest.raises(MCPError, match="no shard answered"):
        await agent.list_resources()


async def test_a_bug_is_logged_and_not_shown(index: FakeIndex, agent: Agent) -> None:
    index.fails = {"Answer": RuntimeError("a secret of this machine")}
    with capture_logs() as logged:
        result = await agent.call_tool("ask", {"question": "Who?"})
    assert result.is_error
    assert "secret" not in text_of(result)
    assert [line["error"] for line in logged] == ["a secret of this machine"]


async def test_an_unknown_tool_is_an_error_that_lists_the_tools(agent: Agent) -> None:
    with pytest.raises(MCPError, match="known are ask, search, fetch, read"):
        await agent.call_tool("delete", {})


async def test_a_cancelled_call_cancels_its_work(index: FakeIndex, agent: Agent) -> None:
    index.hangs = asyncio.Event()
    calling = asyncio.create_task(agent.call_tool("ask", {"question": "Who?"}))
    await asyncio.wait_for(index.hangs.wait(), LONG)
    calling.cancel()
    await asyncio.wait_for(index.cancelled.wait(), LONG)
