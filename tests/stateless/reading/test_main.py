"""`winnow reader`: a server without an index, with the reader of the default bundle."""

import asyncio
import contextlib
import sys
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from pathlib import Path

import httpx
import pytest
from prometheus_client import CollectorRegistry
from tenacious import LONG, happens

import winnow.stateless.reading.__main__ as reader
from winnow.cli.local.ports import free_ports
from winnow.client import AsyncClient
from winnow.errors import NotServedError
from winnow.stateless.reading.server_settings import ReaderSettings

TEXTS = ["The bridge is old.", "Ada Lind built the bridge in 1987.", "Bananas are yellow."]
QUESTION = "Who built the bridge?"


def text_with_answer(at: int) -> str:
    """Returns a text of 141 sentences, one of which answers the question."""
    sentences = [f"In {1800 + number} the market was moved." for number in range(140)]
    return " ".join([*sentences[:at], TEXTS[1], *sentences[at:]])


@contextlib.asynccontextmanager
async def running() -> AsyncIterator[tuple[str, str]]:
    """Runs a server; yields its addresses for gRPC and HTTP once it is ready."""
    listen, http_listen = (f"127.0.0.1:{port}" for port in free_ports(2))
    flags = {
        "listen": listen,
        "http_listen": http_listen,
        "reader_threads": 2,
        "reader_deadline": LONG,
        "drain_linger": 0,
    }
    settings = ReaderSettings.load(flags, None, {})
    registry = CollectorRegistry()
    serving = asyncio.create_task(reader._run(settings.front, registry))
    await happens(lambda: registry.get_sample_value("winnow_front_ready") == 1 or serving.done())
    try:
        yield listen, http_listen
    finally:
        serving.cancel()
        await asyncio.wait([serving])


@pytest.mark.bundle
async def test_a_reader_serves_texts_and_nothing_else(tmp_path: Path) -> None:
    """By the client, over HTTP, and by `winnow read`; a question to an index is not served."""
    async with running() as (address, http_address):
        async with AsyncClient(address) as client:
            await client.wait_ready(LONG)
            reply = await client.read(QUESTION, TEXTS)
            ranked = await client.rerank(QUESTION, TEXTS)
            highlighted = await client.highlight(QUESTION, " ".join(TEXTS))
            long = [await client.read(QUESTION, [text_with_answer(at)]) for at in (0, 70, 140)]
            with pytest.raises(NotServedError, match="--reader-threads"):
                await client.ask(QUESTION)
        async with httpx.AsyncClient(base_url=f"http://{http_address}", timeout=LONG) as http:
            body = {"query": QUESTION, "documents": TEXTS, "top_n": 1}
            other = (await http.post("/v1/rerank", json=body)).json()
            metrics = (await http.get("/metrics")).text
            home = await http.get("/")
            docs = await http.get(home.headers["location"])
            asked = await http.post("/v1/answer", json={"question": QUESTION})
        files = [tmp_path / f"{number}.txt" for number in range(3)]
        for file, text in zip(files, TEXTS, strict=True):
            file.write_text(text, encoding="utf-8")
        command = ["read", QUESTION, *map(str, files), "--address", address, "--answers", "1"]
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "winnow", *command, stdout=PIPE, stderr=PIPE
        )
        output, errors = await process.communicate()
    assert (reply.answer, reply.best[0].index) == ("Ada Lind", 1)
    assert ranked.results[0].index == 1
    for reply_to_long, at in zip(long, (0, 70, 140), strict=True):
        (reading,) = reply_to_long.readings
        text = text_with_answer(at)
        assert reading.windows > 3
        assert (reading.text, text[slice(*reading.sentence)]) == ("Ada Lind", TEXTS[1])
        assert reading.start == text.index("Ada Lind")
    best = max(highlighted.sentences, key=lambda each: each.score)
    assert best.text == TEXTS[1]
    assert best.span == "Ada Lind"
    assert [each["index"] for each in other["results"]] == [1]
    assert "winnow_reader_windows_total" in metrics
    assert (home.status_code, docs.status_code, asked.status_code) == (307, 200, 404)
    assert "`winnow reader` has no index" in asked.json()["detail"]
    assert process.returncode == 0, errors.decode()
    assert "**Ada Lind** built the bridge in 1987." in output.decode()
