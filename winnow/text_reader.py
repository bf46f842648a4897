"""The interface of a reader of texts that callers send.

Implementations: `stateless.reading.core` (in this process), `tests.fake_text_reader` (scripted).
"""

from collections.abc import AsyncGenerator
from typing import Protocol

from winnow.deadline import Deadline
from winnow.domain.text_reading import (
    HighlightedText,
    HighlightTextRequest,
    RankedTexts,
    ReadTextsRequest,
    RerankTextsRequest,
    TextReading,
    TextReadings,
)


class TextReader(Protocol):
    """Reads texts that callers send, and needs no index.

    `client` is the key of the caller, for fair sharing. All methods read every text before the
    deadline, or raise a `winnow.errors.WinnowError`: `InvalidRequestError` names every invalid
    field, `OverloadedError` says when to try again, `DeadlineExceededError` if the time ran out,
    `UnavailableError` while the reader is being loaded.
    """

    async def read(
        self, request: ReadTextsRequest, deadline: Deadline, client: str = ""
    ) -> TextReadings:
        """Returns the best span of each text."""

    def stream(
        self, request: ReadTextsRequest, deadline: Deadline, client: str = ""
    ) -> AsyncGenerator[TextReading, None]:
        """Yields the best span of each text as soon as the text was read, in any order.

        An error ends the iteration. The readings before it are valid.
        """

    async def rerank(
        self, request: RerankTextsRequest, deadline: Deadline, client: str = ""
    ) -> RankedTexts:
        """Orders texts by their relevance to the question."""

    async def highlight(
        self, request: HighlightTextRequest, deadline: Deadline, client: str = ""
    ) -> HighlightedText:
        """Returns the sentences of a text that answer the question."""
