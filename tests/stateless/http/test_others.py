"""Predictions and passages over HTTP."""

from collections.abc import AsyncIterator

import httpx
import pytest
from fake_encoder_groups import FakePredictions
from fed_front import FedFront
from http_front import HttpFront
from tenacious import LONG

from winnow.bundle import Bundle
from winnow.stateless.feed.fed_index import FedIndex, only_fed
from winnow.stateless.feed.filter_deletion import FilterDeletion
from winnow.stateless.http.call import OperationLimits
from winnow.stateless.http.passages import feed_operations
from winnow.stateless.http.predictions import predict_operations

PASSAGE = {"id": "1", "title": "Oslo", "text": "Oslo is the capital.", "metadata": {"year": 2031}}


@pytest.fixture
async def predicting(bundle: Bundle) -> AsyncIterator[httpx.AsyncClient]:
    front = HttpFront()
    front.add(predict_operations(FakePredictions(bundle).core, OperationLimits(LONG)))
    async with front.serving() as client:
        yield client


async def test_heads_are_applied(predicting: httpx.AsyncClient) -> None:
    asked = {"text": "Ada Lovelace wrote it", "headIds": ["intent", "names"]}
    said = (await predicting.post("/v1/predict", json=asked)).json()
    intent, names = said["results"][0]["heads"]
    assert (intent["headId"], len(intent["labels"]), intent["failure"]) == ("intent", 2, "")
    assert "outOfScope" not in intent, "absent where the head cannot tell"
    assert names["entities"][0]["text"] == "Ada Lovelace"
    assert (said["ring"], len(said["requestId"])) == ("en", 16)


@pytest.mark.parametrize(
    ("asked", "status", "words"),
    [
        ({"text": "hi", "headIds": ["nope"]}, 404, "there is no head 'nope'"),
        ({"text": "", "headIds": ["intent"]}, 400, "is empty"),
        ({"texts": ["a"] * 17, "headIds": ["intent"]}, 400, "has 17 texts"),
    ],
)
async def test_what_is_wrong_with_a_text_is_told(
    asked: object, status: int, words: str, predicting: httpx.AsyncClient
) -> None:
    reply = await predicting.post("/v1/predict", json=asked)
    assert reply.status_code == status
    assert words in reply.json()["detail"]


async def test_heads_are_listed_by_the_query(predicting: httpx.AsyncClient) -> None:
    every = (await predicting.get("/v1/heads")).json()["rings"]
    (one,) = (await predicting.get("/v1/heads?ring=de")).json()["rings"]
    assert [group["name"] for group in every] == ["en", "de"]
    assert (one["name"], one["budgetBytes"]) == ("de", "512")
    assert (await predicting.get("/v1/heads?ring=fr")).status_code == 404
    wrong = await predicting.get("/v1/heads?wheel=1")
    assert (wrong.status_code, wrong.json()["violations"][0]["field"]) == (400, "wheel")


@pytest.fixture(scope="module")
def fed(bundle: Bundle) -> FedFront:
    return FedFront(bundle)


@pytest.fixture
async def feeding(fed: FedFront) -> AsyncIterator[httpx.AsyncClient]:
    front = HttpFront()
    deletion = FilterDeletion(None, fed.core)  # type: ignore[arg-type]
    front.add(
        feed_operations(
            only_fed(FedIndex(fed.core, deletion)), OperationLimits(LONG, fed.admission.refusal)
        )
    )
    async with front.serving() as client:
        yield client


async def test_passages_are_put_and_deleted(fed: FedFront, feeding: httpx.AsyncClient) -> None:
    put = (await feeding.post("/v1/passages", json={"passages": [PASSAGE]})).json()
    assert put["results"][0]["outcome"] == "WRITE_OUTCOME_STORED"
    assert put["results"][0]["position"]["sequence"] == "1"
    assert fed.passages["1"].passage.metadata == '{"year": 2031}'
    gone = (await feeding.post("/v1/passages:delete", json={"deletions": [{"id": "1"}]})).json()
    assert gone["results"][0]["outcome"] == "WRITE_OUTCOME_STORED"
    assert "1" not in fed.passages


async def test_a_passage_that_breaks_a_rule_is_named(feeding: httpx.AsyncClient) -> None:
    passages = [PASSAGE, {**PASSAGE, "text": ""}]
    reply = await feeding.post("/v1/passages", json={"passages": passages})
    assert reply.status_code == 400
    assert reply.json()["violations"][0]["field"] == "passages[1].text"


async def test_many_passages_may_be_put_at_once(fed: FedFront, feeding: httpx.AsyncClient) -> None:
    """A long body is read in a thread."""
    passages = [{**PASSAGE, "id": f"many {n}", "text": "ö" * 500} for n in range(20)]
    reply = await feeding.post("/v1/passages", json={"passages": passages})
    assert len(reply.json()["results"]) == 20
    assert len([name for name in fed.passages if name.startswith("many")]) == 20


async def test_passages_are_not_taken_unless_a_front_says_so() -> None:
    async with HttpFront().serving() as client:
        reply = await client.post("/v1/passages", json={"passages": [PASSAGE]})
    assert reply.status_code == 404
