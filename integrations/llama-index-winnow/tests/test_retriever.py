"""The LlamaIndex retriever and query engine against a live cluster, and a front that fails."""

import asyncio

import grpc
import pytest
from fake_front import fake_front
from llama_index.core.vector_stores import (
    FilterCondition,
    FilterOperator,
    MetadataFilter,
    MetadataFilters,
)
from llama_index_winnow import WinnowConnection, WinnowQueryEngine, WinnowRetriever
from pydantic import SecretStr

QUESTION = "Who was the first woman on Mount Everest?"
NOWHERE = MetadataFilters(filters=[MetadataFilter(key="page", value=99)])


def test_a_node_is_a_passage_with_its_source(cluster: str) -> None:
    first = WinnowRetriever(cluster, similarity_top_k=2).retrieve(QUESTION)[0]
    assert first.node_id == "mount-everest-04"
    assert "Junko Tabei" in first.text
    assert first.node.ref_doc_id == "mount-everest.md"
    assert first.metadata["citation"] == "mount-everest.md, page 4"


async def test_the_asynchronous_retriever_finds_the_same(cluster: str) -> None:
    retriever = WinnowRetriever(cluster)
    assert await retriever.aretrieve(QUESTION) == await asyncio.to_thread(
        retriever.retrieve, QUESTION
    )


def of_page(operator: FilterOperator, value: "int | list[int] | None") -> MetadataFilter:
    return MetadataFilter(key="page", operator=operator, value=value)


@pytest.mark.parametrize(
    ("filters", "pages"),
    [
        ([of_page(FilterOperator.EQ, 4)], {4}),
        ([of_page(FilterOperator.IN, [2, 3]), of_page(FilterOperator.NE, 3)], {2}),
        ([of_page(FilterOperator.LTE, 2), of_page(FilterOperator.NIN, [1])], {2}),
        ([of_page(FilterOperator.IS_EMPTY, None)], set()),
        (
            [
                of_page(FilterOperator.LT, 3),
                MetadataFilters(
                    filters=[of_page(FilterOperator.GT, 1)], condition=FilterCondition.NOT
                ),
            ],
            {1},
        ),
    ],
)
def test_filters_restrict_the_nodes(
    filters: list[MetadataFilter | MetadataFilters], pages: set[int], cluster: str
) -> None:
    retriever = WinnowRetriever(
        cluster, similarity_top_k=50, filters=MetadataFilters(filters=filters)
    )
    assert {each.metadata["page"] for each in retriever.retrieve(QUESTION)} == pages


def test_a_filter_without_an_equivalent_is_refused() -> None:
    contains = MetadataFilter(key="lang", operator=FilterOperator.TEXT_MATCH, value="e")
    with pytest.raises(ValueError, match="text_match"):
        WinnowRetriever(filters=MetadataFilters(filters=[contains]))


async def test_a_query_engine_answers_with_words_of_a_passage(cluster: str) -> None:
    engine = WinnowQueryEngine(cluster, answers=2)
    response = await engine.aquery(QUESTION)
    assert str(response) == "Junko Tabei"
    assert response.metadata is not None
    assert response.metadata["complete"]
    best = response.source_nodes[0]
    assert best.text[best.metadata["answer_start"] : best.metadata["answer_end"]] == str(response)
    assert best.metadata["confidence"] == response.metadata["confidence"] > 0.5
    assert str(await asyncio.to_thread(engine.query, QUESTION)) == "Junko Tabei"


def test_a_query_engine_has_no_answer_where_none_is_likely(cluster: str) -> None:
    assert str(WinnowQueryEngine(cluster, filters=NOWHERE).query(QUESTION)) == "None"


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
        connection = WinnowConnection(address=front.address, token=SecretStr("a-token"))
        with pytest.raises(raised):
            await WinnowRetriever(connection).aretrieve(QUESTION)
        assert front.metadata["authorization"] == "Bearer a-token"
        with pytest.raises(raised):
            await WinnowQueryEngine(connection).aquery(QUESTION)


def test_a_late_reply_is_a_timeout() -> None:
    with fake_front() as front:
        connection = WinnowConnection(address=front.address, timeout=0.2)
        with pytest.raises(TimeoutError):
            WinnowQueryEngine(connection).query(QUESTION)


async def test_cancelling_ends_the_call() -> None:
    with fake_front() as front:
        asking = asyncio.create_task(WinnowQueryEngine(front.address).aquery(QUESTION))
        await asyncio.to_thread(front.called.wait, 30)
        asking.cancel()
        assert await asyncio.to_thread(front.ended.wait, 30)
