"""`winnow ask` in a separate process, with a pipe or a terminal, against a cluster."""

import asyncio
import json
import os
import pty
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Self

import pytest
from conftest import QUESTIONS
from scripted_front import ScriptedFront, full_reply, scripted_front
from tenacious import LONG
from whole_cluster import running

from winnow.bundle import Bundle
from winnow.cli.local.ports import free_ports
from winnow.v1 import answer_pb2

COMMAND = [sys.executable, "-m", "winnow", "ask"]
CONTROLLED = """
import os, sys
os.setsid()
os.close(os.open(os.ttyname(0), os.O_RDWR))
os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
"""
"""Takes control of the terminal, so that Ctrl-C becomes a signal; then executes `winnow`."""


async def ask(*arguments: str, lines: str = "") -> tuple[int, str, str]:
    """Runs `winnow ask` with `lines` as its standard input; returns exit code, stdout and stderr."""
    process = await asyncio.create_subprocess_exec(
        *COMMAND, *arguments, stdin=-1, stdout=-1, stderr=-1
    )
    out, err = await process.communicate(lines.encode())
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()


class Terminal:
    """The prompt of `winnow ask` at a pseudo terminal."""

    def __init__(self, address: str, state: Path) -> None:
        self._address, self._state = address, state
        self._seen = b""

    async def __aenter__(self) -> Self:
        self._end, end = pty.openpty()
        self.process = await asyncio.create_subprocess_exec(
            sys.executable, "-c", CONTROLLED, *COMMAND[1:], "--address", self._address,
            stdin=end, stdout=end, stderr=end,
            env={**os.environ, "XDG_STATE_HOME": str(self._state), "TERM": "xterm", "COLUMNS": "80"},
        )  # fmt: skip
        os.close(end)
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.process.returncode is None:
            self.process.kill()
            await self.process.wait()
        os.close(self._end)

    def type(self, keys: str) -> None:
        os.write(self._end, keys.encode())

    async def shows(self, words: str) -> str:
        """Waits for words; returns what was shown up to them."""
        while words.encode() not in self._seen:
            self._seen += await asyncio.to_thread(os.read, self._end, 4096)
        shown, _, self._seen = self._seen.partition(words.encode())
        return (shown + words.encode()).decode()


@pytest.fixture
async def front() -> AsyncIterator[ScriptedFront]:
    async with scripted_front() as made:
        made.reply = full_reply()
        yield made


@pytest.mark.bundle
async def test_a_real_cluster_answers_as_text_as_json_and_from_a_pipe(
    indexes: dict[int, Path], bundle: Bundle
) -> None:
    question, expected = QUESTIONS[0]
    async with running(indexes[2], bundle) as cluster:
        address = cluster.client.address
        code, out, err = await ask(question, "--address", address)
        assert (code, err) == (0, "")
        lines = out.splitlines()
        assert lines[:3] == [expected, "", "Tour de France"]
        assert lines[3].startswith(f"**{expected}** won the 2015 Tour de France")
        assert "\x1b" not in out
        code, out, err = await ask(
            *question.split(), "--address", address, "--json", "--passages-to-read", "3",
            "--answers", "2", "--retriever", "dense", "--read-scope", "global", "--max-loss", "0",
        )  # fmt: skip
        assert (code, err) == (0, "")
        reply = json.loads(out)
        assert (reply["question"], reply["answer"]) == (question, expected)
        assert (len(reply["answers"]), reply["passages_read"]) == (2, 3)
        assert reply["coverage"]["complete"] is True
        calls = reply["timings"]["calls"]
        assert sum(len(call["reads"]) for call in calls) == 3
        code, out, err = await ask(question, "--address", address, "--fresh", "--timings")
        assert (code, err) == (0, "")
        assert "shard 0: retrieve" in out
        assert "shard 1: retrieve" in out
        assert f"  read {reply['answers'][0]['passage']['id']}" in out
        asked = "".join(f"{question}\n\n" for question, _ in QUESTIONS)
        code, out, err = await ask("--address", address, "--json", lines=asked)
        assert (code, err) == (0, "")
        answers = [json.loads(line)["answer"] for line in out.splitlines()]
        assert answers == [expected for _, expected in QUESTIONS]


async def test_a_failed_question_is_reported_and_the_others_are_answered(
    front: ScriptedFront,
) -> None:
    code, out, err = await ask("--address", front.address, lines="one?\ntwo\ufffe?\n")
    assert (code, out.count("40.0 ms"), err) == (0, 2, "")
    assert out.startswith("> one?\n\nZoe\u0308 Nowak\n")
    front.hangs = True
    code, out, err = await ask("--address", front.address, "?", "--timeout", "0.05", "--json")
    assert (code, out) == (1, "")
    assert err.startswith("error: ")


async def test_a_filter_is_sent_unchanged(front: ScriptedFront) -> None:
    where = 'year >= 2010 and lang = "en"'
    code, _, err = await ask("--address", front.address, "?", "--where", where)
    assert (code, err) == (0, "")
    assert [request.filter for request in front.requests] == [where]


async def test_the_error_without_a_listening_front_names_the_command_that_starts_one() -> None:
    address = f"127.0.0.1:{free_ports(1)[0]}"
    code, out, err = await ask("?", "--address", address)
    assert (code, out) == (1, "")
    assert err.startswith(
        f"error: cannot reach a front node at {address}; start one with `winnow up"
    )
    assert err.endswith("`winnow reader` to read texts without an index (Connection refused)\n")


async def test_the_error_for_a_server_without_grpc_says_so() -> None:
    replying = list[asyncio.Task[Any] | None]()

    async def reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        replying.append(asyncio.current_task())
        writer.write(b"OK " * 20)
        await reader.read()  # until the client gives up
        writer.close()

    other = await asyncio.start_server(reply, "127.0.0.1", 0)
    async with other:
        port = other.sockets[0].getsockname()[1]
        code, _, err = await ask("?", "--address", f"127.0.0.1:{port}")
    async with asyncio.timeout(LONG):  # a connection that is not closed would be a warning
        await asyncio.gather(*filter(None, replying), return_exceptions=True)
    assert code == 1
    assert "that port serves no gRPC: check the port" in err


@pytest.mark.parametrize("name", ["hybrid", "HYBRID"])
async def test_a_retriever_may_have_its_name_in_the_protos(front: ScriptedFront, name: str) -> None:
    code, _, err = await ask("--address", front.address, "?", "--retriever", name)
    assert (code, err) == (0, "")
    assert front.requests[-1].retriever == answer_pb2.RETRIEVER_HYBRID


async def test_a_dash_stands_for_standard_input(front: ScriptedFront) -> None:
    long = "a\u200cb" + "a" * 997
    lines = f"one?\ntwo?\n{long}\n{long}?\n"
    code, out, err = await ask("--address", front.address, "-", lines=lines)
    assert (code, err) == (0, "")
    shown = ["> one?", "> two?", f"> {long}", f"> {long}… (1001 characters)"]
    assert [line for line in out.splitlines() if line.startswith("> ")] == shown


async def test_ask_without_a_question_prints_its_usage(front: ScriptedFront) -> None:
    code, _, err = await ask("--address", front.address, lines="\n")
    assert code == 2
    assert err.splitlines() == [
        "error: invalid value for QUESTION: standard input is empty",
        "try 'winnow ask --help'",
    ]


async def test_a_prompt_answers_keeps_a_history_and_survives_ctrl_c(
    front: ScriptedFront, tmp_path: Path
) -> None:
    async with Terminal(front.address, tmp_path) as terminal:
        await terminal.shows("ask> ")
        terminal.type("Who opened the café?\n")
        assert "\x1b[1;7m" in await terminal.shows("40.0 ms")
        await terminal.shows("ask> ")
        front.hangs = True
        front.asked.clear()
        terminal.type("long?\n")
        await front.asked.wait()
        terminal.type("\x03")
        await terminal.shows("given up")
        await front.cancelled.wait()
        front.hangs = False
        await terminal.shows("ask> ")
        terminal.type("exit\n")
        assert await terminal.process.wait() == 0
    assert [request.question for request in front.requests] == ["Who opened the café?", "long?"]
    async with Terminal(front.address, tmp_path) as terminal:
        await terminal.shows("ask> ")
        terminal.type("\x1b[A")
        await terminal.shows("long?")
        terminal.type("\x1b[A\n")
        await terminal.shows("40.0 ms")
        await terminal.shows("ask> ")
        terminal.type("\x04")
        assert await terminal.process.wait() == 0
    assert front.requests[-1].question == "Who opened the café?"


async def test_an_index_is_asked_without_a_server(indexes: dict[int, Path]) -> None:
    question, answer = QUESTIONS[1]
    code, out, _ = await ask(question, "--index", str(indexes[2]), "--json")
    assert code == 0
    reply = json.loads(out)
    assert reply["answer"] == answer
    assert reply["coverage"]["complete"]
    code, out, err = await ask(question, "--index", str(indexes[2].parent))
    assert (code, out) == (1, "")
    assert "is not an index" in err
