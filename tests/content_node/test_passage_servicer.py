"""The passages of a shard over real gRPC, as a front node gets them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from fake_passages import FakePassages
from fakes import FakeSearcher, joint_retrieval
from listening import listening, new_server
from tenacious import LATER, LONG

from winnow.content_node.served_shard import ServedShard
from winnow.content_node.served_shards import ServedShards
from winnow.convert.shard_passage import page_of_message
from winnow.domain.listing import (
    CountRequest,
    DocumentListing,
    DocumentPage,
    FoundPassages,
    PassageCount,
    PassageListing,
    PassageLookup,
    PassagePage,
    SelectedFields,
    StoredDocument,
)
from winnow.domain.passage import Passage
from winnow.errors import (
    NotLoadedError,
    NotServedError,
    OverloadedError,
    UnavailableError,
    WinnowError,
)
from winnow.passage_source import PassageSource
from winnow.rpc.channel import open_channel
from winnow.shard_service.passage_servicer import PASSAGE_SERVICE, ShardPassageServicer
from winnow.stateless.replicas.remote import RemoteNode
from winnow.v1 import shard_passage_pb2, shard_passage_pb2_grpc

PASSAGES = (
    Passage("a", "Title", "some words", '{"document":"d","document_hash":"h"}'),
    Passage("b", "Title", "some words"),
)


@pytest.fixture
def passages() -> FakePassages:
    fake = FakePassages(sequence=7)
    fake.put("b")
    fake.stored["a"] = PASSAGES[0]
    return fake


@pytest.fixture
def shard(passages: FakePassages) -> ServedShard:
    served = ServedShard(3)
    served.serve(FakeSearcher([], passages=passages))
    return served


@asynccontextmanager
async def serving(shard: ServedShard, *, is_old: bool = False) -> AsyncIterator[RemoteNode]:
    server = new_server(PASSAGE_SERVICE)
    if not is_old:
        node = ServedShards([shard], joint=joint_retrieval())
        servicer = ShardPassageServicer(node, LONG)
        shard_passage_pb2_grpc.add_ShardPassageServiceServicer_to_server(servicer, server.grpc)
    async with listening(server) as address, open_channel(address) as channel:
        yield RemoteNode(channel, address)


@pytest.fixture
async def node(shard: ServedShard) -> AsyncIterator[RemoteNode]:
    async with serving(shard) as remote:
        yield remote


@pytest.fixture
def source(node: RemoteNode) -> PassageSource:
    return node.searcher(3).passages


async def test_a_remote_shard_returns_what_the_shard_returns(source: PassageSource) -> None:
    page = await source.fetch(PassageListing(limit=9), LATER)
    assert page == PassagePage(passages=PASSAGES, complete=True, sequence=7)
    found = await source.fetch(PassageLookup(ids=["b", "x"]), LATER)
    assert found == FoundPassages(passages=PASSAGES[1:], looked_up=2, sequence=7)
    count = await source.fetch(CountRequest(), LATER)
    assert count == PassageCount(passages=2, sequence=7)
    documents = await source.fetch(DocumentListing(limit=1, after_document="c"), LATER)
    document = StoredDocument(name="d", passages=1, hash="h")
    assert documents == DocumentPage(documents=(document,), complete=True, sequence=7)


async def test_a_remote_shard_gets_the_whole_request(
    source: PassageSource, passages: FakePassages
) -> None:
    only_text = SelectedFields(title=False, metadata=False)
    page = PassageListing(
        limit=1, where="x = 1", after_id="é", fields=only_text, after=5, client="me"
    )
    lookup = PassageLookup(ids=("é", "a"), fields=SelectedFields(False, False, False), client="me")
    count = CountRequest(where="x = 1", after=5, client="me")
    documents = DocumentListing(limit=2, where="x = 1", after_document="é", after=5, client="me")
    await source.fetch(page, LATER)
    await source.fetch(lookup, LATER)
    await source.fetch(count, LATER)
    await source.fetch(documents, LATER)
    assert passages.requests == [page, lookup, count, documents]


async def test_fields_that_were_not_selected_are_empty(source: PassageSource) -> None:
    wanted = PassageListing(limit=9, fields=SelectedFields(title=False, text=False))
    page = await source.fetch(wanted, LATER)
    assert page.passages == (Passage("a", "", "", PASSAGES[0].metadata), Passage("b", "", ""))


async def test_a_node_of_an_older_version_is_named(shard: ServedShard) -> None:
    async with serving(shard, is_old=True) as node:
        for number in (3, None):
            with pytest.raises(NotServedError, match=f"{node.address}.*older version") as caught:
                await node.searcher(number).passages.fetch(CountRequest(), LATER)
            assert node.address not in caught.value.public


async def test_errors_of_the_shard_reach_the_front(
    source: PassageSource, shard: ServedShard, passages: FakePassages
) -> None:
    passages.fails = OverloadedError("no room", 0.25)
    with pytest.raises(OverloadedError, match="no room"):
        await source.fetch(CountRequest(), LATER)
    shard.fail("the store is damaged")
    with pytest.raises(NotLoadedError, match="damaged"):
        await source.fetch(CountRequest(), LATER)


@pytest.mark.parametrize(
    ("request_", "field"),
    [
        (PassageListing(limit=0), "limit"),
        (PassageListing(limit=1_001), "limit"),
        (PassageListing(limit=1, where="year >"), "filter"),
        (PassageLookup(ids=[]), "ids"),
        (PassageLookup(ids=["a"] * 201), "ids"),
        (CountRequest(where="("), "filter"),
        (DocumentListing(limit=0), "limit"),
    ],
)
async def test_requests_outside_the_limits_are_refused(
    source: PassageSource, request_: Any, field: str
) -> None:
    with pytest.raises(WinnowError, match=f"{field}: "):
        await source.fetch(request_, LATER)


@pytest.mark.parametrize(
    "reply",
    [
        shard_passage_pb2.ListShardPassagesResponse(),
        shard_passage_pb2.ListShardPassagesResponse(
            passages=shard_passage_pb2.PassageColumns(ids=["a", "b"], texts=["one"]), complete=True
        ),
    ],
)
def test_an_invalid_reply_is_not_taken_for_a_page(
    reply: shard_passage_pb2.ListShardPassagesResponse,
) -> None:
    """An incomplete page without passages would be requested for ever."""
    with pytest.raises(UnavailableError, match="invalid reply"):
        page_of_message(reply)
