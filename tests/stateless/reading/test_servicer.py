"""The service that reads texts over real gRPC: by both clients, streamed, and with errors."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import Any

import grpc
import pytest
from fake_text_reader import FakeTextReader
from listening import listening, new_server
from tenacious import LONG

from winnow.client import AsyncClient, Client
from winnow.domain.text_reading import HighlightTextRequest, ReadTextsRequest, TextToRead
from winnow.errors import InvalidRequestError, OverloadedError
from winnow.inference.fair_threads import FairThreads
from winnow.stateless.reading.servicer import (
    MAX_MESSAGE_BYTES,
    MAX_PENDING_BYTES,
    SERVICE,
    ReadMessages,
    ReadServicer,
)
from winnow.v1 import read_pb2, read_pb2_grpc

TEXTS = ["nobody is here", "Ada met Ada", "Ada was here"]
QUESTION = "Who was Ada?"


@pytest.fixture
def reader() -> FakeTextReader:
    return FakeTextReader()


@pytest.fixture
async def address(reader: FakeTextReader) -> AsyncIterator[str]:
    threads = FairThreads(1, "texts")
    server = new_server(
        SERVICE, max_message_bytes=MAX_MESSAGE_BYTES, max_pending_bytes=MAX_PENDING_BYTES
    )
    servicer = ReadServicer(ReadMessages(reader, threads), LONG)
    read_pb2_grpc.add_ReadServiceServicer_to_server(servicer, server.grpc)
    with contextlib.closing(threads):
        async with listening(server) as address:
            yield address


@pytest.fixture
async def client(address: str) -> AsyncIterator[AsyncClient]:
    async with AsyncClient(address, client_name="alice") as made:
        yield made


async def test_texts_are_read(client: AsyncClient, reader: FakeTextReader) -> None:
    """The best readings come first; an unset figure of a text without a span is None."""
    reply = await client.read(QUESTION, TEXTS, answers=1)
    assert [each.index for each in reply.readings] == [0, 1, 2]
    assert reply.best == (reply.readings[1],)
    assert (reply.answer, reply.best[0].sentence) == ("Ada", (0, 11))
    assert (reply.readings[0].text, reply.readings[0].score) == ("", None)
    assert reply.report.model == "fake-1"
    assert reader.requests == [
        ReadTextsRequest(question=QUESTION, texts=tuple(map(TextToRead, TEXTS)), answers=1)
    ]
    assert reader.clients == ["alice"]


async def test_titles_and_ids_travel_with_texts(
    client: AsyncClient, reader: FakeTextReader
) -> None:
    given: Any = ["Ada", {"text": "Bea", "title": "t", "id": "7"}]
    reply = await client.rerank("Who is Bea?", given, top_n=1)
    assert [(each.index, each.id) for each in reply.results] == [(1, "7")]
    (request,) = reader.requests
    assert request.texts == (TextToRead("Ada"), TextToRead("Bea", "t", "7"))  # type: ignore[union-attr]


async def test_many_readings_are_returned_in_order(client: AsyncClient) -> None:
    reply = await client.read(QUESTION, ["Ada"] * 1_000)
    assert [each.index for each in reply.readings] == list(range(1_000))


async def test_a_text_is_highlighted(client: AsyncClient, reader: FakeTextReader) -> None:
    reply = await client.highlight(QUESTION, "Here is Ada.", title="t", sentences=2)
    (sentence,) = reply.sentences
    assert (sentence.text, sentence.span, sentence.span_start) == ("Here is Ada.", "Ada", 8)
    assert reader.requests == [
        HighlightTextRequest(question=QUESTION, text=TextToRead("Here is Ada.", "t"), sentences=2)
    ]


async def test_a_blocking_client_reads_texts(address: str) -> None:
    def work() -> str:
        with Client(address) as client:
            return client.read(QUESTION, TEXTS).answer

    assert await asyncio.to_thread(work) == "Ada"


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ("Ada was here", "texts: is not a list of texts"),
        (["Ada", 7], r"texts\[1\]: is neither a text nor a mapping, but of the type int"),
        (
            [{"text": "Ada", "url": "x"}],
            r"texts\[0\]: has the key 'url': known are text, title, id",
        ),
        ([{"title": "Ada"}], r"texts\[0\]: has no key 'text'"),
        ([{"text": "Ada", "id": 7}], r"texts\[0\]\.id: is not a text but of the type int"),
    ],
)
async def test_wrong_texts_are_refused_by_the_client(
    client: AsyncClient, texts: Any, message: str
) -> None:
    with pytest.raises(InvalidRequestError, match=message):
        await client.read(QUESTION, texts)


async def test_errors_have_their_status(client: AsyncClient, reader: FakeTextReader) -> None:
    reader.fails = OverloadedError("no room", 0.5)
    with pytest.raises(OverloadedError) as raised:
        await client.rerank(QUESTION, TEXTS)
    assert raised.value.retry_after == 0.5


async def test_readings_are_streamed_and_an_error_comes_after_them(
    address: str, reader: FakeTextReader
) -> None:
    reader.fails = OverloadedError("no room", 0.5)
    async with grpc.aio.insecure_channel(address) as channel:
        stub = read_pb2_grpc.ReadServiceStub(channel)
        stream = stub.StreamReadings(read_pb2.ReadTextsRequest(question=QUESTION, texts=TEXTS))
        first: Any = await stream.read()
        assert (first.index, first.text) == (2, "Ada")
        with pytest.raises(grpc.aio.AioRpcError) as raised:
            await stream.read()
    assert raised.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED


async def test_a_cancelled_stream_ends_its_reading(address: str, reader: FakeTextReader) -> None:
    reader.hangs = asyncio.Event()
    ended = asyncio.Event()
    stream_of = reader.stream

    async def watched(*given: Any, **options: Any) -> AsyncIterator[Any]:
        try:
            async with contextlib.aclosing(stream_of(*given, **options)) as readings:
                async for each in readings:
                    yield each
        finally:
            ended.set()

    reader.stream = watched  # type: ignore[method-assign, assignment]
    async with grpc.aio.insecure_channel(address) as channel:
        stub = read_pb2_grpc.ReadServiceStub(channel)
        stream = stub.StreamReadings(read_pb2.ReadTextsRequest(question=QUESTION, texts=TEXTS))
        await stream.read()
        stream.cancel()
        await asyncio.wait_for(ended.wait(), LONG)
