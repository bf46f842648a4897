"""A LangChain document compressor that reads documents, whichever retriever found them."""

from collections.abc import Sequence
from typing import Any, Literal

from langchain_core.callbacks import Callbacks
from langchain_core.documents import BaseDocumentCompressor, Document
from pydantic import Field, PrivateAttr

from langchain_winnow.errors import ERRORS
from winnow.address import DEFAULT_ADDRESS
from winnow.client.frameworks import (
    LazyClients,
    framework_errors,
    most_relevant,
    reading_metadata,
    text_to_read,
)
from winnow.client.frameworks.connection import WinnowConnection
from winnow.client.reading import ReadReply, TextReading


class WinnowCompressor(BaseDocumentCompressor):
    """Keeps the documents that are most relevant to a question, and finds the answer in each.

    The metadata of a returned document also has `relevance_score` (0 to 1), `answer`,
    `answer_start` and `answer_end` in `page_content`, and `confidence` (0 to 1). The title in the
    metadata is read, too. A call reads 1 to 1000 documents of any length, with at most 1,000,000
    characters.
    """

    connection: str | WinnowConnection = DEFAULT_ADDRESS
    """Address of a server that reads texts, or a connection with keys or TLS."""
    top_n: int = Field(default=3, ge=1)
    """Maximum number of documents to return."""
    keep: Literal["document", "sentence"] = "document"
    """Whether to return whole documents, or of each the sentence that answers best."""
    min_relevance: float = Field(default=0.0, ge=0, le=1)
    """Minimum relevance of a returned document."""
    _clients: LazyClients = PrivateAttr()

    def model_post_init(self, _context: Any) -> None:
        """Raises ValueError if the connection is invalid."""
        self._clients = WinnowConnection.of(self.connection).clients

    def compress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """Reads the documents, and returns the most relevant ones, the best first."""
        if not documents:
            return []
        texts = [text_to_read(each.page_content, each.metadata) for each in documents]
        with framework_errors(ERRORS):
            reply = self._clients.client.read(query, texts, **self._clients.call_options)
        return self._compressed(documents, reply)

    async def acompress_documents(
        self, documents: Sequence[Document], query: str, callbacks: Callbacks | None = None
    ) -> Sequence[Document]:
        """Reads the documents, as `compress_documents`."""
        if not documents:
            return []
        texts = [text_to_read(each.page_content, each.metadata) for each in documents]
        with framework_errors(ERRORS):
            reply = await self._clients.async_client.read(
                query, texts, **self._clients.call_options
            )
        return self._compressed(documents, reply)

    def _compressed(self, documents: Sequence[Document], reply: ReadReply) -> list[Document]:
        return [
            self._read_document(documents[each.index], each)
            for each in most_relevant(reply, self.top_n)
            if each.relevance_score >= self.min_relevance
        ]

    def _read_document(self, document: Document, reading: TextReading) -> Document:
        content, metadata = document.page_content, reading_metadata(reading)
        if self.keep == "sentence":
            start, end = reading.sentence
            content = content[start:end]
            metadata["answer_start"] -= start
            metadata["answer_end"] -= start
        return Document(
            id=document.id, page_content=content, metadata={**document.metadata, **metadata}
        )
