"""A LlamaIndex node postprocessor that reads nodes, whichever retriever found them."""

from typing import Any

from llama_index.core.bridge.pydantic import Field, PrivateAttr
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.schema import MetadataMode, NodeWithScore, QueryBundle

from winnow.address import DEFAULT_ADDRESS
from winnow.client.frameworks import (
    LazyClients,
    framework_errors,
    most_relevant,
    reading_metadata,
    text_to_read,
)
from winnow.client.frameworks.connection import WinnowConnection
from winnow.client.reading import ReadReply, TextFields


class WinnowRerank(BaseNodePostprocessor):
    """Keeps the nodes that are most relevant to a question, and finds the answer in each.

    The score of a returned node is its relevance, 0 to 1. Its metadata also has `answer`,
    `answer_start` and `answer_end` in the text, and `confidence` (0 to 1). The title in the
    metadata is read, too. A call reads 1 to 1000 nodes of any length, with at most 1,000,000
    characters.
    """

    connection: str | WinnowConnection = DEFAULT_ADDRESS
    """Address of a server that reads texts, or a connection with keys or TLS."""
    top_n: int = Field(default=3, ge=1)
    """Maximum number of nodes to return."""
    _clients: LazyClients = PrivateAttr()

    def model_post_init(self, _context: Any) -> None:
        """Raises ValueError if the connection is invalid."""
        self._clients = WinnowConnection.of(self.connection).clients

    @classmethod
    def class_name(cls) -> str:
        return "WinnowRerank"

    def _postprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if not nodes:
            return []
        question = _question(query_bundle)
        with framework_errors():
            reply = self._clients.client.read(question, _texts(nodes), **self._clients.call_options)
        return self._ranked(nodes, reply)

    async def _apostprocess_nodes(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle | None = None
    ) -> list[NodeWithScore]:
        if not nodes:
            return []
        question = _question(query_bundle)
        with framework_errors():
            reply = await self._clients.async_client.read(
                question, _texts(nodes), **self._clients.call_options
            )
        return self._ranked(nodes, reply)

    def _ranked(self, nodes: list[NodeWithScore], reply: ReadReply) -> list[NodeWithScore]:
        ranked = []
        for each in most_relevant(reply, self.top_n):
            node, metadata = nodes[each.index].node, reading_metadata(each)
            read = node.model_copy(update={"metadata": {**node.metadata, **metadata}})
            # prompts and embeddings keep the text that they would have without this metadata
            read.excluded_llm_metadata_keys = [*node.excluded_llm_metadata_keys, *metadata]
            read.excluded_embed_metadata_keys = [*node.excluded_embed_metadata_keys, *metadata]
            ranked.append(NodeWithScore(node=read, score=each.relevance_score))
        return ranked


def _question(query_bundle: QueryBundle | None) -> str:
    if query_bundle is None:
        raise ValueError("a question is needed: give query_bundle or query_str")
    return query_bundle.query_str


def _texts(nodes: list[NodeWithScore]) -> list[TextFields]:
    return [
        text_to_read(each.node.get_content(MetadataMode.NONE), each.node.metadata) for each in nodes
    ]
