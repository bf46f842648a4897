"""Predicting with both clients, against a front over real gRPC."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from fake_encoder_groups import FakePredictions

from winnow.bundle import Bundle
from winnow.client import AsyncClient, Client, Predictions
from winnow.errors import InvalidRequestError, NotFoundError, OverloadedError


class InThread:
    """A `Client`, used in threads so that the event loop of the front node runs."""

    def __init__(self, address: str) -> None:
        self.client = Client(address)

    async def predict(self, *given: Any, **options: Any) -> Predictions:
        return await asyncio.to_thread(self.client.predict, *given, **options)

    async def close(self) -> None:
        self.client.close()


@pytest.fixture
def fake(bundle: Bundle) -> FakePredictions:
    return FakePredictions(bundle)


@pytest.fixture(params=[InThread, AsyncClient])
async def client(fake: FakePredictions, request: pytest.FixtureRequest) -> AsyncIterator[Any]:
    async with fake.serving() as address:
        made = request.param(address)
        yield made
        await made.close()


async def test_one_text_is_predicted_as_plain_values(client: Any) -> None:
    got = await client.predict("Ada Lovelace speaks", ["intent", "names"], request_id="mine")
    (said,) = got.results
    intent, names = said.heads
    assert said.text == "Ada Lovelace speaks"
    assert intent.label == intent.labels[0].label
    assert [each.assigned for each in intent.labels] == [True, False]
    assert [(each.label, each.text) for each in names.entities] == [("person", "Ada Lovelace")]
    assert (names.label, intent.out_of_scope, said.truncated) == (None, None, False)
    assert (got.ring, got.request_id) == ("en", "mine")
    assert got.as_dict()["results"][0]["heads"][0]["head_id"] == "intent"


async def test_several_texts_come_back_in_their_order(client: Any) -> None:
    got = await client.predict(["one", "two"], "absicht", ring="de")
    assert [(each.text, len(each.heads)) for each in got.results] == [("one", 1), ("two", 1)]


async def test_a_refusal_is_the_error_that_the_front_raised(
    fake: FakePredictions, client: Any
) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        await client.predict(["fine", ""], "intent")
    assert [each.field for each in caught.value.violations] == ["texts[1]"]
    with pytest.raises(NotFoundError, match="no head 'nope'"):
        await client.predict("hello", "nope")
    fake.heads["en"].failing["intent"] = OverloadedError("no room", 0.25)
    with pytest.raises(OverloadedError) as refused:
        await client.predict("hello", "intent")
    assert refused.value.retry_after == 0.25


async def test_what_no_message_can_hold_is_refused_before_it_is_sent(client: Any) -> None:
    with pytest.raises(InvalidRequestError) as caught:
        await client.predict(["fine", 7], [b"a"], ring=3)
    assert {each.field for each in caught.value.violations} >= {"texts", "ring"}
