"""A Haystack reader that finds answers in documents, whichever retriever found them."""

from typing import Any

from haystack import Document, ExtractedAnswer, component, default_to_dict
from haystack_integrations.common.winnow import ConnectedComponent, WinnowConnection
from haystack_integrations.common.winnow.documents import documents_with_text, texts_to_read

from winnow.address import DEFAULT_ADDRESS
from winnow.client.frameworks import framework_errors
from winnow.client.reading import ReadReply, TextReading


@component
class WinnowReader(ConnectedComponent):
    """Finds the words of documents that answer a question.

    A run reads up to 1000 documents of any length, with at most 1,000,000 characters. The title in
    a document's `meta` is read, too. Documents without text are left out.
    """

    def __init__(
        self,
        connection: str | WinnowConnection = DEFAULT_ADDRESS,
        *,
        top_k: int = 20,
        score_threshold: float | None = None,
        no_answer: bool = True,
    ) -> None:
        """Opens no connection.

        :param connection: Address of a server that reads texts, or a connection with keys or TLS.
        :param top_k: Maximum number of answers, each of another document.
        :param score_threshold: Minimum score of an answer, 0 to 1; None for no minimum.
        :param no_answer: Whether to add an answer without text, whose score is the probability
            that the best answer is wrong.
        """
        self.connection = WinnowConnection.of(connection)
        self.top_k, self.score_threshold, self.no_answer = top_k, score_threshold, no_answer

    @component.output_types(answers=list[ExtractedAnswer])
    def run(
        self, query: str, documents: list[Document], top_k: int | None = None
    ) -> dict[str, list[ExtractedAnswer]]:
        """Reads documents.

        :param query: The question, 1 to 1000 characters.
        :param documents: Documents to read.
        :param top_k: Maximum number of answers, instead of that of the constructor.
        :returns: `answers`, the best first. The score is the confidence, the probability that the
            answer is right; the relevance of the document, if the models have no calibration.
            `context` is the sentence of the answer.
        :raises ValueError: If a parameter is invalid.
        :raises TimeoutError: If there was no reply in time.
        :raises ConnectionError: If no server can be reached, or it reads no texts.
        :raises PermissionError: If the key is missing, invalid or lacks the scope `read`.
        """
        documents = documents_with_text(documents)
        if not documents:
            return {"answers": []}
        clients, texts = self.connection.clients, texts_to_read(documents)
        with framework_errors():
            reply = clients.client.read(query, texts, answers=len(texts), **clients.call_options)
        return self._output(query, documents, reply, top_k)

    @component.output_types(answers=list[ExtractedAnswer])
    async def run_async(
        self, query: str, documents: list[Document], top_k: int | None = None
    ) -> dict[str, list[ExtractedAnswer]]:
        """Reads documents. Parameters and errors are those of `run`."""
        documents = documents_with_text(documents)
        if not documents:
            return {"answers": []}
        clients, texts = self.connection.clients, texts_to_read(documents)
        with framework_errors():
            reply = await clients.async_client.read(
                query, texts, answers=len(texts), **clients.call_options
            )
        return self._output(query, documents, reply, top_k)

    def to_dict(self) -> dict[str, Any]:
        """Serialises the component."""
        return default_to_dict(
            self,
            connection=self.connection,
            top_k=self.top_k,
            score_threshold=self.score_threshold,
            no_answer=self.no_answer,
        )

    def _output(
        self, query: str, documents: list[Document], reply: ReadReply, top_k: int | None
    ) -> dict[str, list[ExtractedAnswer]]:
        answers = [_answer(query, documents[each.index], each) for each in reply.best]
        best = max((each.score for each in answers), default=0.0)
        answers = answers[: self.top_k if top_k is None else top_k]
        if self.no_answer:
            answers.append(ExtractedAnswer(query=query, score=1 - best))
        answers.sort(key=lambda each: -each.score)
        minimum = self.score_threshold
        return {"answers": [each for each in answers if minimum is None or each.score >= minimum]}


def _answer(query: str, document: Document, reading: TextReading) -> ExtractedAnswer:
    start, end = reading.sentence
    assert document.content is not None
    return ExtractedAnswer(
        query=query,
        score=reading.relevance_score if reading.confidence is None else reading.confidence,
        data=reading.text,
        document=document,
        context=document.content[start:end],
        document_offset=ExtractedAnswer.Span(reading.start, reading.end),
        context_offset=ExtractedAnswer.Span(reading.start - start, reading.end - start),
        meta={
            "relevance_score": reading.relevance_score,
            "sentence_confidence": reading.sentence_confidence,
        },
    )
