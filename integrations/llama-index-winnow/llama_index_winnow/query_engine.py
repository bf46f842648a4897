"""A LlamaIndex query engine that answers with the exact words of a passage, without an LLM."""

from typing import Any, Literal

from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.response.schema import Response
from llama_index.core.callbacks import CallbackManager
from llama_index.core.prompts.mixin import PromptMixinType
from llama_index.core.schema import QueryBundle
from llama_index.core.vector_stores import MetadataFilters

from llama_index_winnow.nodes import node_of_passage, where_of_filters
from winnow.address import DEFAULT_ADDRESS
from winnow.client import Reply
from winnow.client.frameworks import framework_errors
from winnow.client.frameworks.connection import WinnowConnection


class WinnowQueryEngine(BaseQueryEngine):
    """Asks an index, whose content nodes read the passages that they find.

    The response is the text of the best answer, or None if no answer is likely. `source_nodes` are
    the passages of the answers, the best first; their metadata has `answer`, `answer_start`,
    `answer_end` and `confidence`.
    """

    def __init__(
        self,
        connection: str | WinnowConnection = DEFAULT_ADDRESS,
        *,
        answers: int = 3,
        passages_to_read: int | None = None,
        filters: MetadataFilters | None = None,
        answer_size: Literal["auto", "span", "sentence", "passage"] | None = None,
        min_confidence: float | None = None,
        callback_manager: CallbackManager | None = None,
    ) -> None:
        """Opens no connection. The front node chooses the value of an option that is None.

        Args:
            connection: address of a front node, or a connection with keys or TLS.
            answers: maximum number of answers, 1 to 100.
            passages_to_read: number of passages to read, 1 to 100.
            filters: filters on metadata.
            answer_size: which part of a passage to show as the answer.
            min_confidence: confidence below which there is no answer, 0 to 1.
            callback_manager: LlamaIndex's callbacks.

        Raises:
            ValueError: the connection is invalid, or a filter has no equivalent in Winnow.

        """
        super().__init__(callback_manager)
        self._clients = WinnowConnection.of(connection).clients
        self._options: dict[str, Any] = {
            **self._clients.call_options,
            "answers": answers,
            "passages_to_read": passages_to_read,
            "where": where_of_filters(filters),
            "answer_size": answer_size,
            "min_confidence": min_confidence,
        }

    def _get_prompt_modules(self) -> PromptMixinType:
        return {}

    def _query(self, query_bundle: QueryBundle) -> Response:
        with framework_errors():
            return _response(self._clients.client.ask(query_bundle.query_str, **self._options))

    async def _aquery(self, query_bundle: QueryBundle) -> Response:
        with framework_errors():
            return _response(
                await self._clients.async_client.ask(query_bundle.query_str, **self._options)
            )


def _response(reply: Reply) -> Response:
    nodes = []
    for answer in reply.answers:
        node = node_of_passage(answer.passage, answer.source, answer.score)
        node.metadata.update(
            answer=answer.shown_text,
            answer_start=answer.start,
            answer_end=answer.end,
            confidence=answer.confidence,
        )
        nodes.append(node)
    metadata = {
        "confidence": reply.answers[0].confidence if reply.answers else None,
        "complete": reply.coverage.complete,
        "request_id": reply.request_id,
    }
    return Response(response=reply.answer, source_nodes=nodes, metadata=metadata)
