"""Converts calls for reading texts to messages of `read.proto` and back."""

import math
from collections.abc import Sequence
from typing import Any

from winnow.convert.by_name import milliseconds, optional, same_fields
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
from winnow.errors import invalid_field
from winnow.v1 import answer_pb2, read_pb2


def read_of_message(message: read_pb2.ReadTextsRequest) -> ReadTextsRequest:
    """Converts a request. Raises InvalidRequestError if it has both texts and passages."""
    return ReadTextsRequest(
        question=message.question,
        texts=_texts(message),
        answers=optional(message, "answers"),
        max_answer_tokens=optional(message, "max_answer_tokens"),
        min_confidence=optional(message, "min_confidence"),
    )


def readings_to_message(readings: TextReadings, request_id: str = "") -> read_pb2.ReadTextsResponse:
    """Converts the result of a request.

    Converting one reading takes some 10 microseconds, so call this function in a thread if there
    are many texts.
    """
    return read_pb2.ReadTextsResponse(
        has_answer=readings.has_answer,
        readings=map(reading_to_message, readings.readings),
        best=readings.best,
        report=_report_to_message(readings.report),
        request_id=request_id,
    )


def reading_to_message(reading: TextReading) -> read_pb2.TextReading:
    first, last = reading.sentence
    return read_pb2.TextReading(
        passage_id=reading.id,
        sentence_start=first,
        sentence_end=last,
        score=_finite(reading.score),
        relevance=_finite(reading.relevance),
        span_score=_finite(reading.span_score),
        **same_fields(reading, excluded=["id", "sentence", "score", "relevance", "span_score"]),
    )


def rerank_of_message(message: read_pb2.RerankTextsRequest) -> RerankTextsRequest:
    """Converts a request. Raises InvalidRequestError if it has both texts and passages."""
    return RerankTextsRequest(
        question=message.question, texts=_texts(message), top_n=optional(message, "top_n")
    )


def ranked_to_message(ranked: RankedTexts, request_id: str = "") -> read_pb2.RerankTextsResponse:
    return read_pb2.RerankTextsResponse(
        results=map(_ranked_to_message, ranked.results),
        report=_report_to_message(ranked.report),
        request_id=request_id,
    )


def highlight_of_message(message: read_pb2.HighlightTextRequest) -> HighlightTextRequest:
    return HighlightTextRequest(
        question=message.question,
        text=TextToRead(message.text, message.title),
        sentences=optional(message, "sentences"),
        min_confidence=optional(message, "min_confidence"),
        max_answer_tokens=optional(message, "max_answer_tokens"),
    )


def highlighted_to_message(
    highlighted: HighlightedText, request_id: str = ""
) -> read_pb2.HighlightTextResponse:
    return read_pb2.HighlightTextResponse(
        sentences=map(_sentence_to_message, highlighted.sentences),
        has_answer=highlighted.has_answer,
        relevance_score=highlighted.relevance_score,
        report=_report_to_message(highlighted.report),
        request_id=request_id,
    )


def _texts(message: Any) -> tuple[TextToRead, ...]:
    texts: Sequence[str] = message.texts
    passages: Sequence[answer_pb2.Passage] = message.passages
    if texts and passages:
        raise invalid_field("passages", "is set, and so is texts: leave one of the two empty")
    return (
        *map(TextToRead, texts),
        *(TextToRead(each.text, each.title, each.id) for each in passages),
    )


def _ranked_to_message(ranked: RankedText) -> read_pb2.RankedText:
    return read_pb2.RankedText(
        passage_id=ranked.id,
        relevance=_finite(ranked.relevance),
        **same_fields(ranked, excluded=["id", "relevance"]),
    )


def _finite(value: float) -> float | None:
    """Returns the value, or None if it is the minus infinity of a text without words."""
    return value if math.isfinite(value) else None


def _sentence_to_message(sentence: HighlightedSentence) -> read_pb2.HighlightedSentence:
    return read_pb2.HighlightedSentence(**same_fields(sentence))


def _report_to_message(report: ReadingReport) -> read_pb2.ReadingReport:
    values = same_fields(report, excluded=["timings"])
    values |= milliseconds(report.timings, "tokenise", "queue", "read", "total")
    return read_pb2.ReadingReport(**values)
