"""`winnow mcp` serves an agent on standard input and output."""

import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
from fake_index import FakeIndex
from in_process import InProcess
from mcp_clients import stdio_agent
from scripted_front import full_reply, scripted_front
from tenacious import LONG

from winnow.cli.mcp.serving import lines_of
from winnow.cli.mcp.sources import ApiOfOpeningIndex
from winnow.client.aio import AsyncClientApi
from winnow.errors import ArtefactError, UnavailableError

HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_an_agent_asks_a_front_node(mode: str, tmp_path: Path) -> None:
    async with scripted_front() as front:
        front.reply = full_reply()
        async with stdio_agent(tmp_path / "log", "--address", front.address, mode=mode) as agent:
            result = await agent.call_tool("ask", {"question": "Who opened the café?"})
            assert not result.is_error
            assert front.requests[0].question == "Who opened the café?"
            assert result.structured_content["coverage"]["passages_known"] == 12


async def test_a_call_that_the_agent_cancels_is_cancelled_on_the_front(tmp_path: Path) -> None:
    async with scripted_front() as front:
        front.hangs = True
        async with stdio_agent(tmp_path / "log", "--address", front.address) as agent:
            calling = asyncio.create_task(agent.call_tool("ask", {"question": "Who?"}))
            await asyncio.wait_for(front.asked.wait(), LONG)
            calling.cancel()
            await asyncio.wait_for(front.cancelled.wait(), LONG)
            front.hangs = False


def test_a_signal_ends_the_command_while_it_waits_for_the_agent() -> None:
    command = [sys.executable, "-m", "winnow", "mcp", "--address", "127.0.0.1:1"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as running:
        assert running.stdin is not None
        assert running.stdout is not None
        running.stdin.write(json.dumps(HELLO).encode() + b"\n")
        running.stdin.flush()
        assert b"instructions" in running.stdout.readline()
        running.send_signal(signal.SIGTERM)
        assert running.wait(LONG) == 130


async def test_lines_arrive_whole_and_end_with_the_input() -> None:
    reading, writing = os.pipe()
    lines = lines_of(reading)
    os.write(writing, b"one\ntw")
    assert await anext(lines) == "one"
    os.write(writing, "o é\n".encode() + b"\xff\n")
    assert [await anext(lines), await anext(lines)] == ["two é", "\ufffd"]
    os.close(writing)
    assert [line async for line in lines] == []
    os.close(reading)


class FakeSource:
    """A source that opens when a test says so, or fails."""

    def __init__(self, fails: Exception | None = None) -> None:
        self.may_open, self.closed, self._fails = asyncio.Event(), False, fails

    def open(self) -> AbstractAsyncContextManager[AsyncClientApi]:
        return self._opened()

    @contextlib.asynccontextmanager
    async def _opened(self) -> AsyncIterator[AsyncClientApi]:
        await self.may_open.wait()
        if self._fails is not None:
            raise self._fails
        try:
            yield FakeIndex()
        finally:
            self.closed = True


async def test_calls_wait_until_the_index_is_open() -> None:
    source = FakeSource()
    async with ApiOfOpeningIndex(source) as api:
        with pytest.raises(UnavailableError, match="still being opened or built: try again"):
            await api.ask("Who?", timeout=0.01)
        asking = asyncio.create_task(api.ask("Who?", timeout=LONG))
        source.may_open.set()
        assert (await asking).has_answer
    assert source.closed


async def test_an_index_that_cannot_be_opened_fails_every_call(
    capsys: pytest.CaptureFixture[str],
) -> None:
    source = FakeSource(ArtefactError("there is no index"))
    source.may_open.set()
    async with ApiOfOpeningIndex(source) as api:
        for _ in range(2):
            with pytest.raises(ArtefactError, match="there is no index"):
                await api.ask("Who?", timeout=LONG)
    assert "there is no index" in capsys.readouterr().err


async def test_an_agent_that_leaves_ends_the_opening() -> None:
    source = FakeSource()
    async with ApiOfOpeningIndex(source):
        await asyncio.sleep(0)
    assert not source.closed


def test_one_index_is_served(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    ended = InProcess(capsys, monkeypatch)("mcp", "--index", "a", "--documents", "b")
    assert ended.returncode == 2
    assert "give --index or --documents, not both" in ended.stderr


def test_without_the_package_the_command_says_what_to_install(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("winnow.cli.mcp.cli.find_spec", lambda _name: None)
    ended = InProcess(capsys, monkeypatch)("mcp")
    assert ended.returncode == 1
    assert "pip install 'winnow-qa[mcp]'" in ended.stderr
