"""The Haystack retriever against a live cluster, and against a front node that fails."""

import asyncio
from typing import Any

import grpc
import pytest
from fake_front import fake_front
from haystack import Pipeline
from haystack.errors import FilterError
from haystack.utils import Secret
from haystack_integrations.components.retrievers.winnow import WinnowConnection, WinnowRetriever

QUESTION = "Who was the first woman on Mount Everest?"


def test_a_document_is_a_passage_with_its_source(cluster: str) -> None:
    first = WinnowRetriever(cluster).run(QUESTION, top_k=1)["documents"][0]
    assert first.id == "mount-everest-04"
    assert first.content is not None
    assert "Junko Tabei" in first.content
    assert first.score is not None
    assert first.meta["title"] == "Mount Everest"
    assert first.meta["citation"] == "mount-everest.md, page 4"


async def test_the_asynchronous_retriever_finds_the_same(cluster: str) -> None:
    retriever = WinnowRetriever(cluster, top_k=5)
    found = await retriever.run_async(QUESTION)
    assert found == await asyncio.to_thread(retriever.run, QUESTION)
    await retriever.close_async()
    assert await retriever.run_async(QUESTION) == found


@pytest.mark.parametrize(
    ("filters", "pages"),
    [
        ({"field": "meta.page", "operator": "==", "value": 4}, {4}),
        ({"field": "meta.page", "operator": "in", "value": [2, 3]}, {2, 3}),
        ({"field": "meta.page", "operator": "in", "value": []}, set()),
        (
            {
                "operator": "AND",
                "conditions": [
                    {"field": "meta.page", "operator": ">=", "value": 2},
                    {
                        "operator": "NOT",
                        "conditions": [{"field": "meta.page", "operator": ">", "value": 2}],
                    },
                ],
            },
            {2},
        ),
    ],
)
def test_filters_restrict_the_documents(
    filters: dict[str, Any], pages: set[int], cluster: str
) -> None:
    found = WinnowRetriever(cluster, filters=filters, top_k=50).run(QUESTION)["documents"]
    assert {each.meta["page"] for each in found} == pages


@pytest.mark.parametrize(
    "filters",
    [
        {"field": "meta.page", "operator": "like", "value": 4},
        {"field": "meta.page", "operator": "=="},
        {"operator": "XOR", "conditions": [{"field": "page", "operator": "==", "value": 1}]},
    ],
)
def test_filters_without_an_equivalent_are_refused(filters: dict[str, Any]) -> None:
    with pytest.raises(FilterError):
        WinnowRetriever().run(QUESTION, filters=filters)


def test_a_pipeline_survives_serialisation(monkeypatch: pytest.MonkeyPatch) -> None:
    """The token is stored by the name of its variable, and the files by their paths."""
    connection = WinnowConnection(
        "front:8080",
        token=Secret.from_env_var("FRONT_TOKEN"),
        ca="ca.pem",
        timeout=3,
        index="docs",
        tenant="acme",
    )
    pipeline = Pipeline()
    filters = {"field": "meta.lang", "operator": "==", "value": "en"}
    pipeline.add_component("retriever", WinnowRetriever(connection, top_k=3, filters=filters))
    monkeypatch.setenv("FRONT_TOKEN", "a-token")
    text = pipeline.dumps()
    assert "a-token" not in text
    loaded = Pipeline.loads(text)
    assert loaded.to_dict() == pipeline.to_dict()
    retriever = loaded.get_component("retriever")
    assert isinstance(retriever, WinnowRetriever)
    assert retriever.connection.token is not None
    assert retriever.connection.token.resolve_value() == "a-token"
    assert (retriever.top_k, retriever.connection.timeout) == (3, 3)
    assert (retriever.connection.index, retriever.connection.tenant) == ("docs", "acme")


def test_a_token_is_needed_only_by_a_run() -> None:
    connection = WinnowConnection(token=Secret.from_env_var("MISSING_TOKEN"))
    retriever = WinnowRetriever(connection)
    with pytest.raises(ValueError, match="MISSING_TOKEN"):
        retriever.run(QUESTION)
    retriever.close()


@pytest.mark.parametrize(
    ("status", "raised"),
    [
        (grpc.StatusCode.UNAUTHENTICATED, PermissionError),
        (grpc.StatusCode.UNAVAILABLE, ConnectionError),
    ],
)
async def test_a_failed_call_raises_an_error_of_python(
    status: grpc.StatusCode, raised: type[Exception]
) -> None:
    with fake_front() as front:
        front.status = status
        retriever = WinnowRetriever(
            WinnowConnection(front.address, token=Secret.from_token("a-token"))
        )
        with pytest.raises(raised):
            await asyncio.to_thread(retriever.run, QUESTION)
        assert front.metadata["authorization"] == "Bearer a-token"
        with pytest.raises(raised):
            await retriever.run_async(QUESTION)


def test_a_late_reply_is_a_timeout() -> None:
    with fake_front() as front, pytest.raises(TimeoutError):
        WinnowRetriever(WinnowConnection(front.address, timeout=0.2)).run(QUESTION)


async def test_cancelling_ends_the_call() -> None:
    with fake_front() as front:
        asking = asyncio.create_task(WinnowRetriever(front.address).run_async(QUESTION))
        await asyncio.to_thread(front.called.wait, 30)
        asking.cancel()
        assert await asyncio.to_thread(front.ended.wait, 30)
