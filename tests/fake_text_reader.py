"""A fake reader of texts: the answer is the last word of the question."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass, field

from winnow.deadline import Deadline
from winnow.domain.text_reading import (
    HighlightedSentence,
    HighlightedText,
    HighlightTextRequest,
    RankedText,
    RankedTexts,
    ReadingReport,
    ReadTextsRequest,
    RerankTextsRequest,
    TextReading,
    TextReadings,
    TextToRead,
)
from winnow.errors import WinnowError


@dataclass
class FakeTextReader:
    """A `TextReader` that finds the last word of the question in each text.

    The relevance of a text is the number of times that it has this word.
    """

    fails: WinnowError | None = None
    """Raised by every call; by a stream after its first reading."""
    hangs: asyncio.Event | None = None
    """If set to an event, every call waits for it."""
    requests: list[ReadTextsRequest | RerankTextsRequest | HighlightTextRequest] = field(
        default_factory=list
    )
    clients: list[str] = field(default_factory=list)

    async def read(
        self, request: ReadTextsRequest, deadline: Deadline, client: str = ""
    ) -> TextReadings:
        await self._behave(request, client)
        readings = _readings(request.question, request.texts)
        found = [each for each in readings if each.end > each.start]
        best = sorted(found, key=lambda each: -each.score)[: request.answers or 3]
        return TextReadings(
            readings=tuple(readings),
            best=tuple(each.index for each in best),
            has_answer=bool(best),
            report=_report(len(readings)),
        )

    async def stream(
        self, request: ReadTextsRequest, deadline: Deadline, client: str = ""
    ) -> AsyncGenerator[TextReading, None]:
        self.requests.append(request)
        self.clients.append(client)
        for each in reversed(_readings(request.question, request.texts)):
            yield each
            if self.hangs is not None:
                await self.hangs.wait()
            if self.fails is not None:
                raise self.fails

    async def rerank(
        self, request: RerankTextsRequest, deadline: Deadline, client: str = ""
    ) -> RankedTexts:
        await self._behave(request, client)
        readings = _readings(request.question, request.texts)
        ranked = sorted(readings, key=lambda each: (-each.relevance, each.index))
        return RankedTexts(
            results=tuple(
                RankedText(
                    index=each.index,
                    id=each.id,
                    relevance=each.relevance,
                    relevance_score=each.relevance_score,
                )
                for each in ranked[: request.top_n]
            ),
            report=_report(len(readings)),
        )

    async def highlight(
        self, request: HighlightTextRequest, deadline: Deadline, client: str = ""
    ) -> HighlightedText:
        await self._behave(request, client)
        reading = _reading(request.question, request.text, 0)
        sentence = HighlightedSentence(
            text=request.text.text,
            start=0,
            end=len(request.text.text),
            span=reading.text,
            span_start=reading.start,
            span_end=reading.end,
            score=reading.score,
            confidence=reading.confidence,
        )
        return HighlightedText(
            sentences=(sentence,) if reading.text else (),
            has_answer=bool(reading.text),
            relevance_score=reading.relevance_score,
            report=_report(1),
        )

    async def _behave(
        self, request: ReadTextsRequest | RerankTextsRequest | HighlightTextRequest, client: str
    ) -> None:
        self.requests.append(request)
        self.clients.append(client)
        if self.hangs is not None:
            await self.hangs.wait()
        if self.fails is not None:
            raise self.fails


def _readings(question: str, texts: tuple[TextToRead, ...]) -> list[TextReading]:
    return [_reading(question, each, index) for index, each in enumerate(texts)]


def _reading(question: str, text: TextToRead, index: int) -> TextReading:
    word = question.rstrip("?").split()[-1]
    count, start = text.text.count(word), max(text.text.find(word), 0)
    end = start + len(word) * bool(count)
    return TextReading(
        index=index,
        id=text.id,
        text=text.text[start:end],
        start=start,
        end=end,
        sentence=(0, len(text.text)) if count else (0, 0),
        score=float(count) if count else float("-inf"),
        relevance=float(count),
        span_score=float(count) if count else float("-inf"),
        relevance_score=count / (count + 1),
        confidence=count / (count + 1),
    )


def _report(texts: int) -> ReadingReport:
    return ReadingReport(tokens=10 * texts, windows=texts, model="fake-1")
