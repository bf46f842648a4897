"""A LangChain retriever that searches an index of Winnow."""

import logging
from typing import Any, Literal

from langchain_core.callbacks import (
    AsyncCallbackManagerForRetrieverRun,
    CallbackManagerForRetrieverRun,
)
from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever
from pydantic import Field, PrivateAttr

from langchain_winnow.errors import ERRORS
from winnow.address import DEFAULT_ADDRESS
from winnow.client import SearchReply
from winnow.client.frameworks import (
    LazyClients,
    framework_errors,
    passage_metadata,
    warn_if_incomplete,
)
from winnow.client.frameworks.connection import WinnowConnection

_LOGGER = logging.getLogger(__name__)


class WinnowRetriever(BaseRetriever):
    """Finds the passages of an index that are most likely to answer a question.

    A document has the id, the text and the metadata of a passage. Its metadata also has `title`,
    `score` (higher is better), and for a passage of a file `source` and `citation`.
    """

    connection: str | WinnowConnection = DEFAULT_ADDRESS
    """Address of a front node, or a connection with keys or TLS."""
    k: int = Field(default=10, ge=1, le=100)
    """Number of documents to return."""
    where: str | None = None
    """A filter on metadata, such as `year >= 2010 and lang = "en"`."""
    retriever: Literal["dense", "sparse", "hybrid"] | None = None
    """Whether to search by vectors, by words, or by both; None for the front node's choice."""
    partial_results: Literal["allow", "forbid"] | None = None
    """Whether to return documents of the other shards if a shard fails; None to allow it."""
    _clients: LazyClients = PrivateAttr()

    def model_post_init(self, _context: Any) -> None:
        """Raises ValueError if the connection is invalid."""
        self._clients = WinnowConnection.of(self.connection).clients

    def _get_relevant_documents(
        self,
        query: str,
        *,
        run_manager: CallbackManagerForRetrieverRun,
        k: int | None = None,
        where: str | None = None,
    ) -> list[Document]:
        with framework_errors(ERRORS):
            return _documents(self._clients.client.search(query, **self._options(k, where)))

    async def _aget_relevant_documents(
        self,
        query: str,
        *,
        run_manager: AsyncCallbackManagerForRetrieverRun,
        k: int | None = None,
        where: str | None = None,
    ) -> list[Document]:
        with framework_errors(ERRORS):
            found = await self._clients.async_client.search(query, **self._options(k, where))
        return _documents(found)

    def _options(self, k: int | None, where: str | None) -> dict[str, Any]:
        return {
            **self._clients.call_options,
            "passages": self.k if k is None else k,
            "where": self.where if where is None else where,
            "retriever": self.retriever,
            "partial_results": self.partial_results,
        }


def _documents(found: SearchReply) -> list[Document]:
    warn_if_incomplete(found.coverage, _LOGGER)
    return [
        Document(
            id=each.passage.id,
            page_content=each.passage.text,
            metadata={**passage_metadata(each.passage, each.source), "score": each.score},
        )
        for each in found.passages
    ]
