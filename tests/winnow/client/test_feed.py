"""Feeding with both clients, against a front over real gRPC."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from fed_front import FedFront

from winnow.bundle import Bundle
from winnow.client import AsyncClient, Client, Outcome, PassageFields
from winnow.errors import (
    InvalidRequestError,
    NotWritableError,
    OverloadedError,
    UnavailableError,
)

DANUBE: PassageFields = {
    "id": "danube",
    "title": "Danube",
    "text": "The Danube rises in the Black Forest.",
    "metadata": {"year": 2015, "share": 0.5, "tags": ["river", 7], "long": True},
}


class InThread:
    """A `Client`, used in threads so that the event loop of the front node runs."""

    def __init__(self, address: str) -> None:
        self.client = Client(address)

    async def put(self, *given: Any, **options: Any) -> Any:
        return await asyncio.to_thread(self.client.put, *given, **options)

    async def delete(self, *given: Any, **options: Any) -> Any:
        return await asyncio.to_thread(self.client.delete, *given, **options)

    async def close(self) -> None:
        self.client.close()


@pytest.fixture
async def front(bundle: Bundle) -> AsyncIterator[FedFront]:
    made = FedFront(bundle)
    yield made
    made.close()


@pytest.fixture(params=[InThread, AsyncClient])
async def client(front: FedFront, request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    async with front.serving() as address:
        made = request.param(address)
        yield made
        await made.close()


async def test_a_passage_arrives_with_everything_that_was_said_of_it(
    front: FedFront, client: Any
) -> None:
    (result,) = await client.put({**DANUBE, "version": 3})
    assert (result.id, result.outcome, result.truncated) == ("danube", Outcome.STORED, False)
    assert result.position.sequence == 1
    stored = front.passages["danube"].passage
    assert (stored.title, stored.text) == (DANUBE["title"], DANUBE["text"])
    assert stored.metadata == ('{"long": true, "share": 0.5, "tags": ["river", 7], "year": 2015}')
    assert front.shard("danube").versions == {"danube": 3}


async def test_several_passages_have_their_results_in_order(client: Any) -> None:
    results = await client.put([{"id": str(n), "text": "some words"} for n in range(5)])
    assert [each.id for each in results] == list("01234")


async def test_deletions_take_one_id_or_several(front: FedFront, client: Any) -> None:
    await client.put([{"id": name, "text": "some words"} for name in "abc"])
    assert [each.outcome for each in await client.delete("a")] == [Outcome.STORED]
    results = await client.delete(["b", "nobody"], version=7)
    assert [each.outcome for each in results] == [Outcome.STORED, Outcome.STORED]
    assert set(front.passages) == {"c"}
    (late,) = await client.put({"id": "b", "text": "some words", "version": 6})
    assert late.outcome is Outcome.OUTDATED


async def test_what_the_front_refuses_is_named(front: FedFront, client: Any) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        await client.put([DANUBE, {"id": "", "text": ""}])
    fields = [each.field for each in caught.value.violations]
    assert fields == ["passages[1].id", "passages[1].text"]
    front.shards[0].fails = front.shards[1].fails = NotWritableError("its replicas share no log")
    with pytest.raises(NotWritableError, match="share no log"):
        await client.put(DANUBE)
    front.shards[0].fails = front.shards[1].fails = OverloadedError("the disk is full", 60.0)
    with pytest.raises(OverloadedError, match="the disk is full") as refused:
        await client.put(DANUBE)
    assert refused.value.retry_after == 60


@pytest.mark.parametrize(
    ("passage", "said"),
    [
        ({"id": 7, "text": "words"}, "passages[0]: "),
        ({"id": "a", "text": "\ud800"}, "passages[0]: "),
        ({"id": "a", "text": "words", "metadata": {"a": object()}}, "passages[0]: "),
        ({"id": "a", "text": "words", "version": -1}, "passages[0]: "),
        ({"id": "a", "texts": "words"}, "a passage has no field 'texts'"),
    ],
)
async def test_what_no_message_can_hold_is_refused_before_it_is_sent(
    client: Any, passage: Any, said: str
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        await client.put(passage)
    assert said in str(caught.value)
    with pytest.raises(InvalidRequestError, match=r"deletions\[1\]"):
        await client.delete(["a", 7])


async def test_a_port_that_is_not_fed_says_what_is_missing(front: FedFront) -> None:
    from scripted_front import scripted_front

    async with scripted_front() as other, AsyncClient(other.address) as client:
        with pytest.raises(UnavailableError, match="--feed-listen"):
            await client.put(DANUBE)
