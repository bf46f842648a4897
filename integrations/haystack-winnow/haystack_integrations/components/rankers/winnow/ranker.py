"""A Haystack ranker that orders documents by their relevance to a question."""

from dataclasses import replace
from typing import Any

from haystack import Document, component, default_to_dict
from haystack_integrations.common.winnow import ConnectedComponent, WinnowConnection
from haystack_integrations.common.winnow.documents import documents_with_text, texts_to_read

from winnow.address import DEFAULT_ADDRESS
from winnow.client.frameworks import framework_errors
from winnow.client.reading import RerankReply


@component
class WinnowRanker(ConnectedComponent):
    """Orders documents by their relevance to a question, whichever retriever found them.

    A run takes up to 1000 documents of any length, with at most 1,000,000 characters. The title in
    a document's `meta` is read, too. Documents without text are left out.
    """

    def __init__(
        self, connection: str | WinnowConnection = DEFAULT_ADDRESS, *, top_k: int = 10
    ) -> None:
        """Opens no connection.

        :param connection: Address of a server that reads texts, or a connection with keys or TLS.
        :param top_k: Maximum number of documents to return.
        """
        self.connection, self.top_k = WinnowConnection.of(connection), top_k

    @component.output_types(documents=list[Document])
    def run(
        self, query: str, documents: list[Document], top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """Orders documents.

        :param query: The question, 1 to 1000 characters.
        :param documents: Documents to order.
        :param top_k: Maximum number of documents, instead of that of the constructor.
        :returns: `documents`, the most relevant first. The score is the relevance, 0 to 1.
        :raises ValueError: If a parameter is invalid.
        :raises TimeoutError: If there was no reply in time.
        :raises ConnectionError: If no server can be reached, or it reads no texts.
        :raises PermissionError: If the key is missing, invalid or lacks the scope `read`.
        """
        documents = documents_with_text(documents)
        if not documents:
            return {"documents": []}
        clients, options = self.connection.clients, self._options(top_k)
        with framework_errors():
            reply = clients.client.rerank(query, texts_to_read(documents), **options)
        return _output(documents, reply)

    @component.output_types(documents=list[Document])
    async def run_async(
        self, query: str, documents: list[Document], top_k: int | None = None
    ) -> dict[str, list[Document]]:
        """Orders documents. Parameters and errors are those of `run`."""
        documents = documents_with_text(documents)
        if not documents:
            return {"documents": []}
        clients, options = self.connection.clients, self._options(top_k)
        with framework_errors():
            reply = await clients.async_client.rerank(query, texts_to_read(documents), **options)
        return _output(documents, reply)

    def to_dict(self) -> dict[str, Any]:
        """Serialises the component."""
        return default_to_dict(self, connection=self.connection, top_k=self.top_k)

    def _options(self, top_k: int | None) -> dict[str, Any]:
        top_n = self.top_k if top_k is None else top_k
        return {**self.connection.clients.call_options, "top_n": top_n}


def _output(documents: list[Document], reply: RerankReply) -> dict[str, list[Document]]:
    ranked = [replace(documents[each.index], score=each.relevance_score) for each in reply.results]
    return {"documents": ranked}
