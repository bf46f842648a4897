"""The postprocessor against a live cluster, with nodes that other retrievers found."""

import asyncio

import grpc
import pytest
from fake_front import fake_front
from llama_index.core.schema import MetadataMode, NodeWithScore, TextNode
from llama_index_winnow import WinnowRerank

QUESTION = "Who opened the museum?"
MUSEUM = "The town built a museum. It was opened by Ada Lind in 1987. Entry is free."
NODES = [
    NodeWithScore(node=TextNode(id_="café", text="The café serves soup until nine."), score=9.0),
    NodeWithScore(
        node=TextNode(id_="museum", text=MUSEUM, metadata={"title": "Town museum"}), score=1.0
    ),
]


async def test_the_most_relevant_nodes_come_first_with_their_answers(cluster: str) -> None:
    rerank = WinnowRerank(connection=cluster)
    ranked = await rerank.apostprocess_nodes(NODES, query_str=QUESTION)
    assert [each.node_id for each in ranked] == ["museum", "café"]
    best = ranked[0]
    assert best.metadata["answer"] == "Ada Lind"
    assert MUSEUM[best.metadata["answer_start"] : best.metadata["answer_end"]] == "Ada Lind"
    assert 1 >= best.get_score() > ranked[1].get_score() >= 0
    assert best.node.get_content(MetadataMode.LLM) == NODES[1].node.get_content(MetadataMode.LLM)
    assert "answer" not in NODES[1].metadata
    same = await asyncio.to_thread(rerank.postprocess_nodes, NODES, None, QUESTION)
    assert same == ranked
    first = WinnowRerank(connection=cluster, top_n=1)
    assert await first.apostprocess_nodes(NODES, query_str=QUESTION) == ranked[:1]


async def test_it_needs_a_question_and_nodes_and_a_server() -> None:
    with fake_front() as front:
        front.status = grpc.StatusCode.UNAVAILABLE
        rerank = WinnowRerank(connection=front.address)
        assert rerank.postprocess_nodes([], query_str=QUESTION) == []
        with pytest.raises(ValueError, match="question"):
            rerank.postprocess_nodes(NODES)
        with pytest.raises(ConnectionError):
            await rerank.apostprocess_nodes(NODES, query_str=QUESTION)


def test_it_is_stored_and_loaded() -> None:
    rerank = WinnowRerank(connection="127.0.0.1:1", top_n=5)
    assert WinnowRerank.from_dict(rerank.to_dict()).to_dict() == rerank.to_dict()
