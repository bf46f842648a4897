"""A Haystack retriever that searches an index of Winnow."""

import logging
from typing import Any, Literal

from haystack import Document, component, default_to_dict
from haystack_integrations.common.winnow import ConnectedComponent, WinnowConnection
from haystack_integrations.components.retrievers.winnow.filters import where_of_filters

from winnow.address import DEFAULT_ADDRESS
from winnow.client import SearchReply
from winnow.client.frameworks import framework_errors, passage_metadata, warn_if_incomplete

_LOGGER = logging.getLogger(__name__)


@component
class WinnowRetriever(ConnectedComponent):
    """Finds the passages of an index that are most likely to answer a question.

    A document has the id, the text, the metadata and the score of a passage. Its metadata also has
    `title`, and for a passage of a file `source` and `citation`.
    """

    def __init__(
        self,
        connection: str | WinnowConnection = DEFAULT_ADDRESS,
        *,
        top_k: int = 10,
        filters: dict[str, Any] | None = None,
        retriever: Literal["dense", "sparse", "hybrid"] | None = None,
        partial_results: Literal["allow", "forbid"] | None = None,
    ) -> None:
        """Opens no connection.

        :param connection: Address of a front node, or a connection with keys or TLS.
        :param top_k: Number of documents to return, 1 to 100.
        :param filters: Haystack filters on metadata.
        :param retriever: Whether to search by vectors, by words, or by both; None for the front
            node's choice.
        :param partial_results: Whether to return documents of the other shards if a shard fails;
            None to allow it.
        """
        self.connection = WinnowConnection.of(connection)
        self.top_k, self.filters = top_k, filters
        self.retriever, self.partial_results = retriever, partial_results

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """Finds documents.

        :param query: The question, 1 to 1000 characters.
        :param filters: Haystack filters, instead of those of the constructor.
        :param top_k: Number of documents, instead of that of the constructor.
        :returns: `documents`, the best first.
        :raises FilterError: If the filters have no equivalent in Winnow.
        :raises ValueError: If another parameter is invalid.
        :raises TimeoutError: If there was no reply in time.
        :raises ConnectionError: If no front node, or no shard, can be reached.
        :raises PermissionError: If the key is missing, invalid or lacks the scope.
        """
        clients, options = self.connection.clients, self._options(filters, top_k)
        with framework_errors():
            return _output(clients.client.search(query, **options))

    @component.output_types(documents=list[Document])
    async def run_async(
        self, query: str, filters: dict[str, Any] | None = None, top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """Finds documents. Parameters and errors are those of `run`."""
        clients, options = self.connection.clients, self._options(filters, top_k)
        with framework_errors():
            return _output(await clients.async_client.search(query, **options))

    def to_dict(self) -> dict[str, Any]:
        """Serialises the component."""
        return default_to_dict(
            self,
            connection=self.connection,
            top_k=self.top_k,
            filters=self.filters,
            retriever=self.retriever,
            partial_results=self.partial_results,
        )

    def _options(self, filters: dict[str, Any] | None, top_k: int | None) -> dict[str, Any]:
        return {
            **self.connection.clients.call_options,
            "passages": self.top_k if top_k is None else top_k,
            "where": where_of_filters(self.filters if filters is None else filters),
            "retriever": self.retriever,
            "partial_results": self.partial_results,
        }


def _output(found: SearchReply) -> dict[str, list[Document]]:
    warn_if_incomplete(found.coverage, _LOGGER)
    documents = [
        Document(
            id=each.passage.id,
            content=each.passage.text,
            meta=passage_metadata(each.passage, each.source),
            score=each.score,
        )
        for each in found.passages
    ]
    return {"documents": documents}
