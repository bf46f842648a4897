"""Texts of callers over HTTP, also in the form of other rerankers."""

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fake_text_reader import FakeTextReader
from http_front import HttpFront
from tenacious import LONG

from winnow.errors import InvalidRequestError, OverloadedError, Violation
from winnow.inference.fair_threads import FairThreads
from winnow.stateless.http.call import OperationLimits
from winnow.stateless.http.reading import read_operations
from winnow.stateless.reading.servicer import ReadMessages

DOCUMENTS = ["nobody is here", "Ada met Ada", "Ada was here"]


@pytest.fixture
def reader() -> FakeTextReader:
    return FakeTextReader()


@pytest.fixture
async def client(reader: FakeTextReader) -> AsyncIterator[httpx.AsyncClient]:
    front, threads = HttpFront(), FairThreads(1, "texts")
    messages = ReadMessages(reader, threads)
    front.add(read_operations(messages, OperationLimits(LONG)))
    async with front.serving() as client:
        yield client
    threads.close()


async def test_texts_are_read(client: httpx.AsyncClient) -> None:
    body = {"question": "Who was Ada?", "texts": DOCUMENTS, "answers": 1}
    reply = (await client.post("/v1/read", json=body)).json()
    assert reply["best"] == [1]
    assert reply["hasAnswer"] is True
    assert [each["text"] for each in reply["readings"]] == ["", "Ada", "Ada"]
    assert "score" not in reply["readings"][0]
    assert reply["readings"][1]["sentenceEnd"] == 11
    assert reply["report"]["tokens"] == 30


async def test_a_text_is_highlighted(client: httpx.AsyncClient) -> None:
    body = {"question": "Who was Ada?", "text": "Ada was here."}
    reply = (await client.post("/v1/highlight", json=body)).json()
    assert [(each["text"], each["span"]) for each in reply["sentences"]] == [
        ("Ada was here.", "Ada")
    ]


@pytest.mark.parametrize("version", ["1", "2"])
async def test_documents_are_ranked_in_the_form_of_other_rerankers(
    client: httpx.AsyncClient, version: str
) -> None:
    """Fields that only other rerankers know are ignored, and the model is returned."""
    body = {
        "model": "rerank-v3.5",
        "query": "Who was Ada?",
        "documents": [DOCUMENTS[0], {"text": DOCUMENTS[1], "title": "x"}, DOCUMENTS[2]],
        "top_n": 2,
        "max_tokens_per_doc": 4096,
        "truncation": True,
    }
    reply = await client.post(f"/v{version}/rerank", json=body)
    assert reply.status_code == 200
    found = reply.json()
    assert found.pop("id") == reply.headers["x-request-id"]
    assert found == {
        "model": "rerank-v3.5",
        "results": [
            {"index": 1, "relevance_score": 2 / 3, "document": {"text": "Ada met Ada"}},
            {"index": 2, "relevance_score": 1 / 2, "document": {"text": "Ada was here"}},
        ],
        "usage": {"total_tokens": 30, "prompt_tokens": 30},
        "meta": {"api_version": {"version": version}},
    }


async def test_texts_of_documents_can_be_left_out(client: httpx.AsyncClient) -> None:
    """More results than documents may be requested, and the bundle's name stands for a model."""
    body = {"query": "Ada", "documents": DOCUMENTS, "top_n": 50, "return_documents": False}
    reply = (await client.post("/v2/rerank", json=body)).json()
    assert [each["index"] for each in reply["results"]] == [1, 2, 0]
    assert not any("document" in each for each in reply["results"])
    assert reply["model"] == "fake-1"


@pytest.mark.parametrize(
    ("documents", "field"),
    [
        (["a", 7], "documents[1]"),
        (["a", None], "documents[1]"),
        ([["a"]], "documents[0]"),
        ([{"title": "a"}], "documents[0].text"),
        ([{"text": 7}], "documents[0].text"),
    ],
)
async def test_a_document_that_is_no_text_is_named(
    client: httpx.AsyncClient, documents: Any, field: str
) -> None:
    reply = await client.post("/v1/rerank", json={"query": "Ada", "documents": documents})
    assert reply.status_code == 400
    assert [each["field"] for each in reply.json()["violations"]] == [field]


async def test_errors_of_a_rerank_use_its_names(
    client: httpx.AsyncClient, reader: FakeTextReader
) -> None:
    reader.fails = InvalidRequestError(
        Violation("question", "is empty"), Violation("texts", "has 0 texts")
    )
    reply = await client.post("/v1/rerank", json={"query": "", "documents": []})
    assert reply.status_code == 400
    assert [each["field"] for each in reply.json()["violations"]] == ["query", "documents"]


async def test_every_call_needs_the_scope_read(reader: FakeTextReader) -> None:
    scopes: list[str] = []

    def gate(scope: str, _headers: object, calls: int = 1, begun: int = 0) -> str:
        scopes.append(scope)
        return "alice"

    front, threads = HttpFront(gate=gate), FairThreads(1, "texts")
    front.add(read_operations(ReadMessages(reader, threads), OperationLimits(LONG)))
    async with front.serving() as client:
        for path in ("/v1/read", "/v1/highlight", "/v1/rerank", "/v2/rerank"):
            body = (
                {"question": "Ada"} if path in ("/v1/read", "/v1/highlight") else {"query": "Ada"}
            )
            assert (await client.post(path, json=body)).status_code == 200
    threads.close()
    assert scopes == ["read"] * 4
    assert reader.clients == ["alice"] * 4


async def test_a_full_server_says_when_to_try_again(
    client: httpx.AsyncClient, reader: FakeTextReader
) -> None:
    reader.fails = OverloadedError("no room", 3.0)
    reply = await client.post("/v1/rerank", json={"query": "Ada", "documents": ["a"]})
    assert (reply.status_code, reply.headers["retry-after"]) == (429, "3")


async def test_other_operations_still_refuse_unknown_fields(client: httpx.AsyncClient) -> None:
    body = {"question": "Ada", "texts": ["a"], "top_n": 1}
    reply = await client.post("/v1/read", json=body)
    assert reply.status_code == 400
