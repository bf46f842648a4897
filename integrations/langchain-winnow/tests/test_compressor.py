"""The compressor against a live cluster, with documents that other retrievers found."""

import asyncio

import grpc
import pytest
from fake_front import fake_front
from langchain_core.documents import Document
from langchain_core.exceptions import ModelConnectionError
from langchain_winnow import WinnowCompressor

QUESTION = "Who opened the museum?"
DOCUMENTS = [
    Document(page_content="The café on the corner serves soup. It closes at nine.", id="café"),
    Document(
        page_content="The town built a museum. It was opened by Ada Lind in 1987. Entry is free.",
        metadata={"title": "Town museum", "shelf": 7},
        id="museum",
    ),
    Document(page_content="A train leaves every hour.", id="train"),
]


def test_the_most_relevant_documents_come_first_with_their_answers(cluster: str) -> None:
    found = WinnowCompressor(connection=cluster, top_n=2).compress_documents(DOCUMENTS, QUESTION)
    assert [each.id for each in found][:1] == ["museum"]
    assert len(found) == 2
    best = found[0]
    metadata = best.metadata
    assert best.page_content == DOCUMENTS[1].page_content
    assert metadata["answer"] == "Ada Lind"
    assert best.page_content[metadata["answer_start"] : metadata["answer_end"]] == "Ada Lind"
    assert metadata["relevance_score"] > found[1].metadata["relevance_score"]
    assert 0 < metadata["confidence"] <= 1
    assert metadata["shelf"] == 7
    assert "answer" not in DOCUMENTS[1].metadata


async def test_a_document_can_be_cut_to_the_sentence_that_answers(cluster: str) -> None:
    compressor = WinnowCompressor(connection=cluster, top_n=1, keep="sentence")
    (found,) = await compressor.acompress_documents(DOCUMENTS, QUESTION)
    assert found.page_content == "It was opened by Ada Lind in 1987."
    metadata = found.metadata
    assert found.page_content[metadata["answer_start"] : metadata["answer_end"]] == "Ada Lind"
    same = await asyncio.to_thread(compressor.compress_documents, DOCUMENTS, QUESTION)
    assert same == [found]


def test_documents_below_the_minimum_are_dropped(cluster: str) -> None:
    compressor = WinnowCompressor(connection=cluster, min_relevance=1)
    assert compressor.compress_documents(DOCUMENTS, QUESTION) == []


async def test_without_documents_there_is_no_call_and_a_failed_call_is_an_error() -> None:
    with fake_front() as front:
        front.status = grpc.StatusCode.UNAVAILABLE
        compressor = WinnowCompressor(connection=front.address)
        assert await compressor.acompress_documents([], QUESTION) == []
        with pytest.raises(ModelConnectionError):
            await compressor.acompress_documents(DOCUMENTS, QUESTION)
