"""The retriever against a live cluster, and against a front node that fails."""

import asyncio
from typing import Any

import grpc
import pytest
from fake_front import fake_front
from langchain_core import exceptions
from langchain_core.retrievers import BaseRetriever
from langchain_tests.integration_tests import RetrieversIntegrationTests
from langchain_winnow import WinnowConnection, WinnowRetriever
from pydantic import SecretStr

QUESTION = "Who was the first woman on Mount Everest?"


class TestStandard(RetrieversIntegrationTests):
    """LangChain's own tests."""

    address = ""

    @pytest.fixture(autouse=True)
    def _started(self, cluster: str) -> None:
        type(self).address = cluster

    @property
    def retriever_constructor(self) -> type[BaseRetriever]:
        return WinnowRetriever

    @property
    def retriever_constructor_params(self) -> dict[str, Any]:
        return {"connection": self.address}

    @property
    def retriever_query_example(self) -> str:
        return QUESTION


def test_a_document_is_a_passage_with_its_source(cluster: str) -> None:
    first = WinnowRetriever(connection=cluster, k=3).invoke(QUESTION)[0]
    assert first.id == "mount-everest-04"
    assert "Junko Tabei" in first.page_content
    assert first.metadata["title"] == "Mount Everest"
    assert first.metadata["source"] == "mount-everest.md"
    assert first.metadata["citation"] == "mount-everest.md, page 4"
    assert first.metadata["page"] == 4


def test_a_filter_restricts_the_documents(cluster: str) -> None:
    retriever = WinnowRetriever(connection=cluster, where='document = "tour-de-france.md"')
    assert {each.metadata["title"] for each in retriever.invoke(QUESTION)} == {"Tour de France"}
    found = retriever.invoke(QUESTION, None, where="page = 4")
    assert {each.metadata["page"] for each in found} == {4}


def test_each_event_loop_has_its_own_connection(cluster: str) -> None:
    """Programs run one loop after another, such as by `asyncio.run` in a notebook."""
    retriever = WinnowRetriever(connection=cluster, k=1)
    first, second = (asyncio.run(retriever.ainvoke(QUESTION)) for _ in range(2))
    assert first == second == retriever.invoke(QUESTION)


@pytest.mark.parametrize(
    ("status", "raised"),
    [
        (grpc.StatusCode.UNAUTHENTICATED, exceptions.ModelAuthenticationError),
        (grpc.StatusCode.PERMISSION_DENIED, exceptions.ModelPermissionDeniedError),
        (grpc.StatusCode.RESOURCE_EXHAUSTED, exceptions.ModelRateLimitError),
        (grpc.StatusCode.UNAVAILABLE, exceptions.ModelConnectionError),
        (grpc.StatusCode.INTERNAL, exceptions.ModelAPIError),
    ],
)
async def test_a_failed_call_raises_an_error_of_langchain(
    status: grpc.StatusCode, raised: type[Exception]
) -> None:
    with fake_front() as front:
        front.status = status
        retriever = WinnowRetriever(connection=front.address)
        with pytest.raises(raised):
            await asyncio.to_thread(retriever.invoke, QUESTION)
        with pytest.raises(raised):
            await retriever.ainvoke(QUESTION)


def test_a_late_reply_is_a_timeout() -> None:
    with fake_front() as front:
        connection = WinnowConnection(address=front.address, timeout=0.2)
        with pytest.raises(exceptions.ModelTimeoutError):
            WinnowRetriever(connection=connection).invoke(QUESTION)


async def test_cancelling_ends_the_call() -> None:
    with fake_front() as front:
        asking = asyncio.create_task(WinnowRetriever(connection=front.address).ainvoke(QUESTION))
        await asyncio.to_thread(front.called.wait, 30)
        asking.cancel()
        assert await asyncio.to_thread(front.ended.wait, 30)


def test_the_token_is_sent_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    with fake_front() as front:
        front.status = grpc.StatusCode.UNAVAILABLE
        connection = WinnowConnection(address=front.address, token=SecretStr("a-token"))
        retriever = WinnowRetriever(connection=connection)
        with pytest.raises(exceptions.ModelConnectionError):
            retriever.invoke(QUESTION)
        assert front.metadata["authorization"] == "Bearer a-token"
        assert "a-token" not in repr(retriever)
    monkeypatch.setenv("WINNOW_TOKEN", "b-token")
    assert WinnowConnection().token == SecretStr("b-token")
