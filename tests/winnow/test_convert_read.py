"""Conversion between calls for reading texts and their messages."""

import pytest

from winnow.convert import read as convert
from winnow.domain.text_reading import (
    HighlightedSentence,
    HighlightedText,
    RankedText,
    RankedTexts,
    ReadingReport,
    ReadingTimings,
    TextReading,
    TextReadings,
    TextToRead,
)
from winnow.errors import InvalidRequestError
from winnow.v1 import answer_pb2, read_pb2

REPORT = ReadingReport(
    question_truncated=True,
    unread_language="de",
    tokens=42,
    windows=3,
    windows_remembered=1,
    timings=ReadingTimings(tokenise=0.001, queue=0.002, read=0.5, total=0.75),
    model="fake-1",
)
READING = TextReading(
    index=0,
    id="p",
    text="Ada",
    start=3,
    end=6,
    sentence=(0, 9),
    score=1.5,
    relevance=2.5,
    span_score=3.5,
    relevance_score=0.75,
    confidence=0.5,
    windows=2,
    windows_remembered=1,
)


def test_texts_and_passages_become_texts_to_read() -> None:
    """Passages bring a title and an id; unset options are left to the server."""
    of_texts = convert.read_of_message(read_pb2.ReadTextsRequest(question="who", texts=["a", "b"]))
    passages = [answer_pb2.Passage(id="1", title="t", text="a")]
    message = read_pb2.RerankTextsRequest(question="who", passages=passages, top_n=0)
    of_passages = convert.rerank_of_message(message)
    assert of_texts.texts == (TextToRead("a"), TextToRead("b"))
    assert (of_texts.answers, of_texts.min_confidence) == (None, None)
    assert of_passages.texts == (TextToRead("a", "t", "1"),)
    assert of_passages.top_n == 0


def test_a_request_has_either_texts_or_passages() -> None:
    both = read_pb2.ReadTextsRequest(texts=["a"], passages=[answer_pb2.Passage(text="b")])
    with pytest.raises(InvalidRequestError, match="passages") as raised:
        convert.read_of_message(both)
    assert [each.field for each in raised.value.violations] == ["passages"]


def test_a_reading_keeps_every_value_in_its_message() -> None:
    """The first index is set although it is 0, and an unknown confidence is not set."""
    readings = TextReadings(readings=(READING,), best=(0,), has_answer=True, report=REPORT)
    message = convert.readings_to_message(readings, "r")
    (made,) = message.readings
    assert made == read_pb2.TextReading(
        index=0,
        passage_id="p",
        text="Ada",
        start=3,
        end=6,
        sentence_start=0,
        sentence_end=9,
        score=1.5,
        relevance=2.5,
        span_score=3.5,
        relevance_score=0.75,
        confidence=0.5,
        windows=2,
        windows_remembered=1,
    )
    assert made.HasField("index")
    assert not made.HasField("sentence_confidence")
    assert (message.has_answer, list(message.best), message.request_id) == (True, [0], "r")
    assert message.report == read_pb2.ReadingReport(
        question_truncated=True,
        unread_language="de",
        tokens=42,
        windows=3,
        windows_remembered=1,
        tokenise_ms=1,
        queue_ms=2,
        read_ms=500,
        total_ms=750,
        model="fake-1",
    )


def test_ranked_texts_and_highlighted_sentences_keep_every_value() -> None:
    ranked = RankedText(index=1, id="p", relevance=2.0, relevance_score=0.5)
    sentence = HighlightedSentence(
        text="Ada wrote it.",
        start=5,
        end=18,
        span="Ada",
        span_start=5,
        span_end=8,
        score=1.5,
        sentence_confidence=0.25,
    )
    reranked = convert.ranked_to_message(RankedTexts(results=(ranked,), report=REPORT), "r")
    highlighted = HighlightedText(
        sentences=(sentence,), has_answer=False, relevance_score=0.5, report=REPORT
    )
    message = convert.highlighted_to_message(highlighted, "r")
    assert list(reranked.results) == [
        read_pb2.RankedText(index=1, passage_id="p", relevance=2.0, relevance_score=0.5)
    ]
    assert list(message.sentences) == [
        read_pb2.HighlightedSentence(
            text="Ada wrote it.",
            start=5,
            end=18,
            span="Ada",
            span_start=5,
            span_end=8,
            score=1.5,
            sentence_confidence=0.25,
        )
    ]
    assert message.HasField("has_answer")
    assert message.relevance_score == 0.5


def test_a_highlight_takes_one_text_with_its_title() -> None:
    message = read_pb2.HighlightTextRequest(question="who", text="a", title="t", sentences=2)
    request = convert.highlight_of_message(message)
    assert request.text == TextToRead("a", "t")
    assert (request.sentences, request.max_answer_tokens) == (2, None)
