"""The reader and the ranker against a live cluster, with documents that others found."""

import asyncio

import grpc
import pytest
from fake_front import fake_front
from haystack import Document, Pipeline
from haystack_integrations.components.rankers.winnow import WinnowRanker
from haystack_integrations.components.readers.winnow import WinnowReader
from haystack_integrations.components.retrievers.winnow import WinnowRetriever

QUESTION = "Who opened the museum?"
MUSEUM = "The town built a museum. It was opened by Ada Lind in 1987. Entry is free."
DOCUMENTS = [
    Document(id="café", content="The café on the corner serves soup. It closes at nine."),
    Document(id="museum", content=MUSEUM, meta={"shelf": 7}),
    Document(id="picture"),
]


async def test_an_answer_is_a_part_of_its_document(cluster: str) -> None:
    reader = WinnowReader(cluster, no_answer=False)
    answers = (await reader.run_async(QUESTION, DOCUMENTS))["answers"]
    best = answers[0]
    assert best.data == "Ada Lind"
    assert best.document == DOCUMENTS[1]
    assert best.document_offset is not None
    assert MUSEUM[best.document_offset.start : best.document_offset.end] == "Ada Lind"
    assert best.context == "It was opened by Ada Lind in 1987."
    assert best.context_offset is not None
    assert best.context[best.context_offset.start : best.context_offset.end] == "Ada Lind"
    assert [each.score for each in answers] == sorted(
        (each.score for each in answers), reverse=True
    )
    assert await asyncio.to_thread(reader.run, QUESTION, DOCUMENTS) == {"answers": answers}
    assert len((await reader.run_async(QUESTION, DOCUMENTS, top_k=1))["answers"]) == 1


def test_the_answer_without_text_has_the_probability_that_the_best_is_wrong(cluster: str) -> None:
    answers = WinnowReader(cluster).run(QUESTION, DOCUMENTS, top_k=1)["answers"]
    scores = {each.data: each.score for each in answers}
    assert scores[None] == pytest.approx(1 - scores["Ada Lind"])
    threshold = min(scores.values()) + 0.001
    kept = WinnowReader(cluster, score_threshold=threshold).run(QUESTION, DOCUMENTS)["answers"]
    assert all(each.score >= threshold for each in kept)


async def test_a_ranker_orders_documents_by_relevance(cluster: str) -> None:
    ranker = WinnowRanker(cluster)
    ranked = (await ranker.run_async(QUESTION, DOCUMENTS))["documents"]
    assert [each.id for each in ranked] == ["museum", "café"]
    assert ranked[0].score is not None
    assert ranked[1].score is not None
    assert 1 >= ranked[0].score > ranked[1].score >= 0
    assert DOCUMENTS[1].score is None
    assert await asyncio.to_thread(ranker.run, QUESTION, DOCUMENTS, 1) == {"documents": ranked[:1]}


def test_a_pipeline_that_was_stored_and_loaded_answers(cluster: str) -> None:
    pipeline = Pipeline()
    pipeline.add_component("retriever", WinnowRetriever(cluster, top_k=10))
    pipeline.add_component("ranker", WinnowRanker(cluster, top_k=5))
    pipeline.add_component("reader", WinnowReader(cluster, top_k=2))
    pipeline.connect("retriever", "ranker")
    pipeline.connect("ranker", "reader")
    loaded = Pipeline.loads(pipeline.dumps())
    assert loaded.to_dict()["components"] == pipeline.to_dict()["components"]
    question = "Who was the first woman on Mount Everest?"
    asked = {name: {"query": question} for name in ("retriever", "ranker", "reader")}
    answers = loaded.run(asked)["reader"]["answers"]
    assert answers[0].data == "Junko Tabei"
    assert answers[0].document.meta["citation"] == "mount-everest.md, page 4"
    loaded.close()


async def test_without_documents_there_is_no_call_and_a_failed_call_is_an_error() -> None:
    with fake_front() as front:
        front.status = grpc.StatusCode.UNAVAILABLE
        reader, ranker = WinnowReader(front.address), WinnowRanker(front.address)
        assert reader.run(QUESTION, [DOCUMENTS[2]]) == {"answers": []}
        assert ranker.run(QUESTION, []) == {"documents": []}
        with pytest.raises(ConnectionError):
            await reader.run_async(QUESTION, DOCUMENTS)
        with pytest.raises(ConnectionError):
            await ranker.run_async(QUESTION, DOCUMENTS)
