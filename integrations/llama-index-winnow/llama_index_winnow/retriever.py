"""A LlamaIndex retriever that searches an index of Winnow."""

import logging
from typing import Any, Literal

from llama_index.core.callbacks import CallbackManager
from llama_index.core.retrievers import BaseRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle
from llama_index.core.vector_stores import MetadataFilters

from llama_index_winnow.nodes import node_of_passage, where_of_filters
from winnow.address import DEFAULT_ADDRESS
from winnow.client import SearchReply
from winnow.client.frameworks import framework_errors, warn_if_incomplete
from winnow.client.frameworks.connection import WinnowConnection

_LOGGER = logging.getLogger(__name__)


class WinnowRetriever(BaseRetriever):
    """Finds the passages of an index that are most likely to answer a question.

    A node has the id, the text and the metadata of a passage. Its metadata also has `title`, and
    for a passage of a file `source` and `citation`. Higher scores are better.
    """

    def __init__(
        self,
        connection: str | WinnowConnection = DEFAULT_ADDRESS,
        *,
        similarity_top_k: int = 10,
        filters: MetadataFilters | None = None,
        retriever: Literal["dense", "sparse", "hybrid"] | None = None,
        partial_results: Literal["allow", "forbid"] | None = None,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        """Opens no connection.

        Args:
            connection: address of a front node, or a connection with keys or TLS.
            similarity_top_k: number of nodes to return, 1 to 100.
            filters: filters on metadata.
            retriever: whether to search by vectors, by words, or by both; None for the front
                node's choice.
            partial_results: whether to return nodes of the other shards if a shard fails; None to
                allow it.
            callback_manager: LlamaIndex's callbacks.

        Raises:
            ValueError: the connection is invalid, or a filter has no equivalent in Winnow.

        """
        super().__init__(callback_manager=callback_manager)
        self._clients = WinnowConnection.of(connection).clients
        self._options: dict[str, Any] = {
            **self._clients.call_options,
            "passages": similarity_top_k,
            "where": where_of_filters(filters),
            "retriever": retriever,
            "partial_results": partial_results,
        }

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        with framework_errors():
            return _nodes(self._clients.client.search(query_bundle.query_str, **self._options))

    async def _aretrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        with framework_errors():
            return _nodes(
                await self._clients.async_client.search(query_bundle.query_str, **self._options)
            )


def _nodes(found: SearchReply) -> list[NodeWithScore]:
    warn_if_incomplete(found.coverage, _LOGGER)
    return [node_of_passage(each.passage, each.source, each.score) for each in found.passages]
