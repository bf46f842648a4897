"""The service of passages over real gRPC, by both clients."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import closing
from types import SimpleNamespace
from typing import Any

import grpc
import pytest
from passage_front import PassageFront
from tenacious import LATER, LONG

from winnow.client import AsyncClient, Client, Passage, StoredDocument
from winnow.client.passages import id_batches
from winnow.domain.passage_request import PassageResults
from winnow.errors import InvalidRequestError, OverloadedError, UnavailableError
from winnow.inference.fair_threads import FairThreads
from winnow.rpc import request_id
from winnow.rpc.status import error_of
from winnow.stateless.passages.servicer import PassageMessages, PassageServicer
from winnow.v1 import passage_pb2, passage_pb2_grpc


class Blocking:
    """A `Client`, used in threads so that the event loop of the front runs."""

    def __init__(self, address: str) -> None:
        self.client = Client(address)

    async def close(self) -> None:
        self.client.close()

    def __getattr__(self, name: str) -> Any:
        method = getattr(self.client, name)
        if name in ("list_passages", "list_documents"):
            return lambda *given, **options: asyncio.to_thread(
                lambda: list(method(*given, **options))
            )
        return lambda *given, **options: asyncio.to_thread(method, *given, **options)


async def every(listed: Any) -> list[Any]:
    """Returns the items of a listing of either client."""
    if hasattr(listed, "__aiter__"):
        return [each async for each in listed]
    found: list[Any] = await listed
    return found


@pytest.fixture
def front() -> PassageFront:
    made = PassageFront(3)
    for number in range(30):
        made.put(f"d#{number:02}", document="d", document_hash="h", document_passages=30, year=7)
    return made


@pytest.fixture(params=[Blocking, AsyncClient])
async def client(front: PassageFront, request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    async with front.serving() as address:
        made = request.param(address)
        yield made
        await made.close()


async def test_clients_list_look_up_and_count_passages(front: PassageFront, client: Any) -> None:
    metadata = {"document": "d", "document_hash": "h", "document_passages": 30, "year": 7}
    first = Passage(id="d#00", title="Title", text="some words", metadata=metadata)
    passages = await every(client.list_passages(where='lang = "en"'))
    assert [each.id for each in passages] == [f"d#{number:02}" for number in range(30)]
    assert passages[0] == first
    page = await client.list_page(page_size=4, fields=["title"])
    assert page.passages[0] == Passage(id="d#00", title="Title", text="")
    rest = await client.list_page(page.next_page_token, page_size=1_000)
    assert len(page.passages) + len(rest.passages) == 30
    found = await client.get_passages([f"d#{number:02}" for number in range(40)], fields=["text"])
    assert len(found) == 30
    assert found["d#07"] == Passage(id="d#07", title="", text="some words")
    assert await client.get_passages("d#00") == {"d#00": first}
    assert await client.count_passages() == 30
    documents = await every(client.list_documents())
    assert documents == [StoredDocument(name="d", passages=30, hash="h", expected=30)]


async def test_a_client_fetches_the_ids_that_did_not_fit(front: PassageFront, client: Any) -> None:
    ids = [f"x{number:03}-{'é' * 200}" for number in range(150)]
    for each in ids:
        front.put(each)
    assert set(await client.get_passages(ids)) == set(ids)


def test_ids_are_sent_in_parts_that_fit_into_a_message() -> None:
    ids = ["é" * 250] * 60 + ["a"] * 250
    parts = list(id_batches(ids))
    assert [each for part in parts for each in part] == ids
    assert max(map(len, parts)) == 100
    assert max(len("".join(part).encode()) for part in parts) <= 12_000


async def test_errors_reach_the_caller(front: PassageFront, client: Any) -> None:
    for call, field in (
        (client.list_page("wrong"), "page_token"),
        (client.list_page(page_size=0), "page_size"),
        (client.count_passages("lang >"), "filter"),
        (client.get_passages([""]), r"ids\[0\]"),
    ):
        with pytest.raises(InvalidRequestError, match=f"{field}: "):
            await call
    front.shards[0].fails = OverloadedError("full", 0.5)
    with pytest.raises(OverloadedError):
        await client.count_passages()


@pytest.mark.parametrize("options", [{"fields": ["tex"]}, {"wherever": ""}, {"after": [7]}])
async def test_a_wrong_option_is_refused_before_the_call(
    front: PassageFront, client: Any, options: dict[str, Any]
) -> None:
    with pytest.raises(InvalidRequestError):
        await client.list_page(**options)
    assert front.calls == 0


async def test_an_export_streams_pages_and_can_be_resumed(front: PassageFront) -> None:
    for own in front.shards.values():
        own.page_limit = 3
    async with front.serving() as address, grpc.aio.insecure_channel(address) as channel:
        stub = passage_pb2_grpc.PassageServiceStub(channel)
        call = stub.ExportPassages(passage_pb2.ExportPassagesRequest())
        pages = [page async for page in call]
        assert len(pages) > 2
        ids = [each.id for page in pages for each in page.passages]
        assert ids == [f"d#{number:02}" for number in range(30)]
        assert pages[0].passages[0].metadata["year"] == 7
        trailing = dict(await call.trailing_metadata())
        assert trailing[request_id.KEY]
        token = pages[0].next_page_token
        request = passage_pb2.ExportPassagesRequest(page_token=token)
        rest = [each.id async for page in stub.ExportPassages(request) for each in page.passages]
        assert rest == ids[len(pages[0].passages) :]
    calls = front.registry.get_sample_value(
        "winnow_request_seconds_count", {"method": "ExportPassages", "status": "OK"}
    )
    assert calls == 2


async def test_an_export_that_fails_ends_with_the_error(front: PassageFront) -> None:
    async with front.serving() as address, grpc.aio.insecure_channel(address) as channel:
        stub = passage_pb2_grpc.PassageServiceStub(channel)
        front.shards[1].fails = UnavailableError("gone")
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            async for _ in stub.ExportPassages(passage_pb2.ExportPassagesRequest()):
                pass
    error = error_of(caught.value.code(), caught.value.details() or "", None)
    assert type(error) is UnavailableError
    assert "shard 1" in str(error)


class Endless:
    """A passage core whose exports have pages without end."""

    closed = False

    async def export(self, *_: object) -> AsyncGenerator[PassageResults, None]:
        try:
            while True:
                yield PassageResults(passages=(), next_page_token="more")
        finally:
            self.closed = True


@pytest.mark.parametrize("lines", [False, True])
async def test_an_export_whose_caller_leaves_is_closed_at_once(lines: bool) -> None:
    core: Any = Endless()
    request = passage_pb2.ExportPassagesRequest()
    with closing(FairThreads(1, "passages")) as threads:
        messages = PassageMessages(core, threads)
        replies: AsyncGenerator[Any, None]
        if lines:
            replies = messages.export_lines(request, lambda: LATER, "")
        else:
            context = SimpleNamespace(invocation_metadata=tuple)
            replies = PassageServicer(messages, LONG).ExportPassages(request, context)
        await anext(replies)
        await replies.aclose()
    assert core.closed


@pytest.mark.parametrize("field", [0, 9])
async def test_an_unknown_field_is_refused(front: PassageFront, field: Any) -> None:
    async with front.serving() as address, grpc.aio.insecure_channel(address) as channel:
        stub = passage_pb2_grpc.PassageServiceStub(channel)
        with pytest.raises(grpc.aio.AioRpcError, match="fields"):
            await stub.ListPassages(passage_pb2.ListPassagesRequest(fields=[field]))
