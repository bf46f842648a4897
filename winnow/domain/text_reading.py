"""Requests to read texts that a caller sends, and their results. No index is involved."""

from dataclasses import dataclass, field
from typing import TypeAlias

TextSpan: TypeAlias = tuple[int, int]
"""A range of a text: offsets in code points, with an exclusive end."""


@dataclass(frozen=True, slots=True)
class TextToRead:
    """A text that a caller sends to be read."""

    text: str
    title: str = ""
    """A title, which is read, too."""
    id: str = ""
    """An id of the caller, which is returned with the result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadTextsRequest:
    """A request for the best span of each text. None leaves a value to the server."""

    question: str
    texts: tuple[TextToRead, ...]
    answers: int | None = None
    """Maximum number of texts to name as the best."""
    max_answer_tokens: int | None = None
    """Maximum length of a span, in tokens of the reader."""
    min_confidence: float | None = None
    """Minimum confidence of the best span, so that the texts have an answer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextReading:
    """The best span of a text, and its scores."""

    index: int
    """Number of the text in the request, from 0."""
    id: str = ""
    """Id of the text, as the caller sent it."""
    text: str
    """The span: a substring of the caller's text, character for character."""
    start: int
    """Offset of the span in the text, in code points."""
    end: int
    """Offset after the span; equal to `start` if no span was found."""
    sentence: TextSpan
    """Range of the sentence, list item, table row or list that contains the span."""
    score: float
    """Weighted sum of the relevance, the score of the span and the BM25 of the question's words;
    minus infinity without a span.
    """
    relevance: float
    """The reader's highest raw relevance logit for a window of the text; minus infinity for a text
    without words.
    """
    span_score: float
    """Start logit plus end logit of the span."""
    relevance_score: float
    """Relevance by the reader's logit and the question's words in the text, 0 to 1."""
    confidence: float | None = None
    """Probability that the span is right, 0 to 1; None if the bundle cannot estimate it."""
    sentence_confidence: float | None = None
    """Probability that the sentence contains the right answer; None if it is not estimated."""
    windows: int = 1
    """Number of windows in which the text was read."""
    windows_remembered: int = 0
    """Number of windows whose states were remembered from an earlier request."""


@dataclass(slots=True, kw_only=True)
class ReadingTimings:
    """Seconds that a request spent in each stage; each field is set when its stage ends."""

    tokenise: float = 0.0
    queue: float = 0.0
    """Until the first reader thread was free."""
    read: float = 0.0
    total: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingReport:
    """What a request read, and how long it took."""

    question_truncated: bool = False
    """Whether the question was cut because it was longer than the reader's limit."""
    unread_language: str = ""
    """ISO 639-1 code of the question's language, if the models probably do not read it."""
    tokens: int = 0
    """Number of tokens of the question and of all texts."""
    windows: int = 0
    """Number of windows that were read."""
    windows_remembered: int = 0
    """Number of windows whose states were remembered from an earlier request."""
    timings: ReadingTimings = field(default_factory=ReadingTimings)
    model: str = ""
    """Name and version of the bundle."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextReadings:
    """The readings of all texts of a request."""

    readings: tuple[TextReading, ...]
    """One for each text, in the order of the request."""
    best: tuple[int, ...]
    """Indexes of the readings with the highest scores, best first; only texts with a span."""
    has_answer: bool
    """Whether the best span is likely enough to be right."""
    report: ReadingReport


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankTextsRequest:
    """A request to order texts by their relevance to a question."""

    question: str
    texts: tuple[TextToRead, ...]
    top_n: int | None = None
    """Maximum number of results; None for all texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedText:
    """A text by its relevance to a question."""

    index: int
    """Number of the text in the request, from 0."""
    id: str = ""
    """Id of the text, as the caller sent it."""
    relevance: float
    """The reader's highest raw relevance logit for a window of the text; minus infinity for a text
    without words.
    """
    relevance_score: float
    """Relevance by the reader's logit and the question's words in the text, 0 to 1."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedTexts:
    """Texts by their relevance to a question, best first."""

    results: tuple[RankedText, ...]
    report: ReadingReport


@dataclass(frozen=True, slots=True, kw_only=True)
class HighlightTextRequest:
    """A request for the sentences of a text that answer a question. None leaves a value to the
    server.
    """

    question: str
    text: TextToRead
    sentences: int | None = None
    """Maximum number of sentences."""
    min_confidence: float | None = None
    """Minimum confidence of the best span of a sentence."""
    max_answer_tokens: int | None = None
    """Maximum length of a span, in tokens of the reader."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HighlightedSentence:
    """A sentence, list item or table row, and its best span. Offsets count code points of the text
    of the request.
    """

    text: str
    """The sentence: a substring of the text of the request."""
    start: int
    end: int
    span: str
    """The words of the sentence that answer best."""
    span_start: int
    span_end: int
    score: float
    """Score of the span; higher is better."""
    confidence: float | None = None
    """Probability that the span is right, 0 to 1; None if the bundle cannot estimate it."""
    sentence_confidence: float | None = None
    """Probability that the sentence contains the right answer; None if it is not estimated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HighlightedText:
    """The sentences of a text that answer a question, in the order of the text."""

    sentences: tuple[HighlightedSentence, ...]
    has_answer: bool
    """Whether the best sentence is likely enough to contain the answer."""
    relevance_score: float
    """Relevance of the text, 0 to 1."""
    report: ReadingReport
