"""An agent answers from a folder of documents, by the official client of MCP."""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from mcp.client.client import Client
from mcp_clients import http_agent, stdio_agent, text_of
from tenacious import LONG

from winnow.cli.local.ports import free_ports
from winnow.client import Client as FrontClient


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("documents")
    (folder / "areas.md").write_text(
        "# Policy\n\n## Archive areas\n\nThe Debian archive has three areas: main, contrib and "
        "non-free.\n"
    )
    (folder / "team.txt").write_text("The mascot of the project is a penguin called Tux.\n")
    return folder


async def converse(agent: Client) -> None:
    """The agent looks at its tools, asks, cites, and reads the document that was cited."""

    async def call(name: str, **arguments: Any) -> Any:
        result = await agent.call_tool(name, arguments)
        assert not result.is_error, text_of(result)
        return result.structured_content

    assert {"ask", "search", "fetch"} <= {each.name for each in (await agent.list_tools()).tools}
    answer = await call("ask", question="How many areas does the Debian archive have?")
    assert answer["answer"] == "three"
    assert answer["citation"] == "areas.md, Archive areas"
    assert answer["coverage"]["complete"]

    found = await call("search", query="mascot of the project")
    assert found["results"][0]["id"] == "team.txt#0"
    passage = await call("fetch", id=answer["id"])
    document = await call("fetch", id=passage["document"])
    assert "main, contrib and non-free" in document["text"]

    resources = [each.uri for each in (await agent.list_resources()).resources]
    assert resources == ["winnow://documents/areas.md", "winnow://documents/team.txt"]
    (content,) = (await agent.read_resource(resources[1])).contents
    assert "Tux" in getattr(content, "text", "")

    texts = ["The office is in Oslo.", passage["text"]]
    read = await call("read", question="How many areas does the Debian archive have?", texts=texts)
    assert (read["answers"][0]["text"], read["answers"][0]["answer"]) == (1, "three")

    refused = await agent.call_tool("ask", {"question": "Who?", "filter": "yaer > 2000"})
    assert refused.is_error
    assert "there is no field 'yaer'" in text_of(refused)


async def test_an_agent_converses_over_standard_input_and_output(
    folder: Path, tmp_path: Path
) -> None:
    """The command builds the index, while the first call waits."""
    arguments = ("--documents", str(folder), "--timeout", str(LONG))
    async with stdio_agent(tmp_path / "log", *arguments, mode="legacy") as agent:
        await converse(agent)


@contextmanager
def served(folder: Path) -> Iterator[tuple[str, str]]:
    """Runs `winnow up` on the folder; yields the addresses of gRPC and HTTP."""
    grpc, http = (f"127.0.0.1:{port}" for port in free_ports(2))
    command = [sys.executable, "-m", "winnow", "up", "--documents", str(folder)]
    with subprocess.Popen([*command, "--listen", grpc, "--http-listen", http]) as running:
        try:
            with FrontClient(grpc) as client:
                client.wait_ready(LONG)
            yield grpc, http
        finally:
            running.terminate()


async def test_an_agent_converses_with_a_running_cluster(folder: Path, tmp_path: Path) -> None:
    """Over HTTP, and by a command that calls the cluster."""
    with served(folder) as (grpc, http):
        async with http_agent(f"http://{http}/mcp") as agent:
            await converse(agent)
        timeout = ("--timeout", str(LONG))
        async with stdio_agent(tmp_path / "log", "--address", grpc, *timeout) as agent:
            await converse(agent)
