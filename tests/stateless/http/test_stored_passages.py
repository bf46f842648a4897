"""Passages over HTTP."""

import json
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from http_front import HttpFront
from passage_front import PassageFront
from tenacious import LONG

from winnow.errors import UnavailableError
from winnow.inference.fair_threads import FairThreads
from winnow.stateless.http.call import OperationLimits
from winnow.stateless.http.stored_passages import passage_operations
from winnow.stateless.passages.servicer import PassageMessages


@pytest.fixture
def passages() -> PassageFront:
    made = PassageFront(2)
    for number in range(20):
        made.put(f"d#{number:02}", document="d", big=2**60 + 1)
    return made


@pytest.fixture
async def client(passages: PassageFront) -> AsyncIterator[httpx.AsyncClient]:
    front, threads = HttpFront(), FairThreads(1, "passages")
    messages = PassageMessages(passages.core, threads)
    front.add(passage_operations(messages, OperationLimits(LONG, front.admission.refusal)))
    async with front.serving() as client:
        yield client
    threads.close()


async def test_passages_are_listed_by_pages(client: httpx.AsyncClient) -> None:
    first = (await client.get("/v1/passages?pageSize=7&fields=id&fields=title")).json()
    assert first["passages"][0] == {"id": "d#00", "title": "Title", "text": ""}
    token = first["nextPageToken"]
    rest = (await client.get("/v1/passages", params={"page_token": token})).json()
    assert rest["nextPageToken"] == ""
    ids = [each["id"] for each in (*first["passages"], *rest["passages"])]
    assert ids == [f"d#{number:02}" for number in range(20)]


async def test_passages_are_looked_up_and_counted(client: httpx.AsyncClient) -> None:
    reply = await client.post("/v1/passages:get", json={"ids": ["d#03", "x"], "fields": ["text"]})
    found = reply.json()
    assert found["passages"] == [{"id": "d#03", "title": "", "text": "some words"}]
    assert found["missingIds"] == ["x"]
    counted = (await client.get("/v1/passages:count?filter=lang%3D'en'")).json()
    assert counted["passages"] == "20"
    documents = (await client.get("/v1/documents")).json()["documents"]
    assert documents == [{"name": "d", "passages": "20", "hash": ""}]


async def test_a_method_that_is_switched_off_names_its_setting(client: httpx.AsyncClient) -> None:
    """The path is served for another method."""
    for path in ("/v1/passages", "/v1/indexes/docs/passages"):
        reply = await client.post(path, json={})
        assert (reply.status_code, "GET" in reply.headers["allow"]) == (405, True)
        assert f"'POST' is not supported at '{path}': it needs --feed-listen" in reply.text
    assert (await client.put("/v1/passages")).json()["detail"].endswith(": use GET or HEAD")


async def test_a_header_with_a_tenant_never_leads_to_the_list_of_all(
    client: httpx.AsyncClient,
) -> None:
    """A proxy in front of a front without keys may set it."""
    listed = await client.get("/v1/tenants")
    refused = await client.get("/v1/tenants", headers={"x-winnow-tenant": "acme"})
    assert (listed.status_code, refused.status_code) == (200, 403)
    assert "the reply is of all tenants" in refused.json()["detail"]


async def test_an_export_is_json_lines_that_a_build_reads(
    passages: PassageFront, client: httpx.AsyncClient
) -> None:
    for own in passages.shards.values():
        own.page_limit = 4
    reply = await client.get("/v1/passages:export")
    assert reply.headers["content-type"] == "application/x-ndjson"
    lines: list[dict[str, Any]] = [json.loads(line) for line in reply.text.splitlines()]
    assert [each["id"] for each in lines] == [f"d#{number:02}" for number in range(20)]
    metadata = {"document": "d", "big": 2**60 + 1}
    assert lines[0] == {"id": "d#00", "title": "Title", "text": "some words", "metadata": metadata}


async def test_an_export_that_fails_at_once_is_a_problem(
    passages: PassageFront, client: httpx.AsyncClient
) -> None:
    passages.shards[0].fails = UnavailableError("gone")
    reply = await client.get("/v1/passages:export")
    assert reply.status_code == 503
    assert "shard 0" in reply.json()["detail"]


async def test_an_export_that_fails_later_does_not_look_complete(
    passages: PassageFront, client: httpx.AsyncClient
) -> None:
    for own in passages.shards.values():
        own.page_limit = 4

    async def export() -> None:
        async with client.stream("GET", "/v1/passages:export") as reply:
            async for _ in reply.aiter_lines():
                passages.shards[0].fails = UnavailableError("gone")

    with pytest.raises(httpx.RemoteProtocolError):
        await export()


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("pageSize=x", "pageSize"),
        ("fields=tex", "fields"),
        ("filter=lang", "filter"),
        ("page_size=1&page_size=2", "pageSize: occurs twice"),
        ("page_size=0", "pageSize: 0 is not between 1 and 1"),
        ("page_size=-1", "pageSize: -1 is less than 0"),
        ("page_token=xyz", "pageToken: is not a token"),
        ("x=1", "x"),
    ],
)
async def test_a_wrong_parameter_is_named(
    client: httpx.AsyncClient, query: str, field: str
) -> None:
    reply = await client.get(f"/v1/passages?{query}")
    assert reply.status_code == 400
    assert reply.json()["detail"].startswith(field)
