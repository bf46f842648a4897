"""Calls that read texts of the caller, and their replies as plain values.

`winnow/v1/read.proto` defines scores and offsets.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NotRequired, TypedDict

from winnow.client.calls import Call
from winnow.client.predicting import json_value
from winnow.client.requests import build_request
from winnow.convert.by_name import value_of_message
from winnow.domain.text_reading import HighlightedSentence
from winnow.errors import InvalidRequestError, Violation
from winnow.quoting import quoted
from winnow.v1 import read_pb2, read_pb2_grpc

DEFAULT_READ_TIMEOUT = 60.0
"""Seconds until a call that reads texts is given up."""
_MAX_VIOLATIONS = 10
"""Maximum number of invalid texts that an error names."""


class TextFields(TypedDict):
    """A text to read with its title and an id of the caller."""

    text: str
    title: NotRequired[str]
    """A title, which is read, too."""
    id: NotRequired[str]
    """An id, which is returned with the result."""


Texts = Sequence[str | TextFields]
"""Texts to read: each is a text, or a mapping with `text`, `title` and `id`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingReport:
    """What a call read, and how long it took."""

    question_truncated: bool
    """Whether the question was cut, because the reader has a maximum length."""
    unread_language: str
    """ISO 639-1 code of the question's language, if the models probably do not read it."""
    tokens: int
    """Number of tokens of the question and of all texts."""
    windows: int
    """Number of parts in which all texts were read."""
    windows_remembered: int
    """Number of these parts whose states were remembered from an earlier call."""
    tokenise_ms: float
    queue_ms: float
    read_ms: float
    total_ms: float
    model: str
    """Name and version of the bundle that read the texts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextReading:
    """The best span of a text, and its scores. All offsets count code points of the text."""

    index: int
    """Number of the text in the call, from 0."""
    id: str
    """Id of the text, if the caller gave one."""
    text: str
    """The span; empty if the text has no words."""
    start: int
    end: int
    sentence: tuple[int, int]
    """Range of the sentence, list item or table row that contains the span."""
    score: float | None
    """Score of the span: higher is better. None if the text has no words."""
    relevance: float | None
    """The reader's raw relevance logit. None if the text has no words."""
    span_score: float | None
    relevance_score: float
    """Relevance by the reader's logit and the question's words in the text, 0 to 1."""
    confidence: float | None = None
    """Probability that the span is right, 0 to 1; None without a calibration."""
    sentence_confidence: float | None = None
    """Probability that the sentence contains the right answer; None without a calibration."""
    windows: int = 1
    """Number of parts in which the text was read."""
    windows_remembered: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadReply:
    """The readings of texts."""

    has_answer: bool
    """Whether the best span is likely enough to be right."""
    readings: tuple[TextReading, ...]
    """One for each text, in the order of the call."""
    best: tuple[TextReading, ...]
    """The readings with the highest scores, best first."""
    report: ReadingReport
    request_id: str

    @property
    def answer(self) -> str:
        """The best span, if the texts have an answer; otherwise empty."""
        return self.best[0].text if self.has_answer and self.best else ""

    def as_dict(self) -> dict[str, Any]:
        """Converts to JSON values."""
        return dict(json_value(asdict(self)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RankedText:
    """A text by its relevance."""

    index: int
    """Number of the text in the call, from 0."""
    id: str
    """Id of the text, if the caller gave one."""
    relevance_score: float
    """Relevance, 0 to 1."""
    relevance: float | None
    """The reader's raw relevance logit. None if the text has no words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankReply:
    """Texts by their relevance to a question."""

    results: tuple[RankedText, ...]
    """The most relevant texts, best first."""
    report: ReadingReport
    request_id: str

    def as_dict(self) -> dict[str, Any]:
        """Converts to JSON values."""
        return dict(json_value(asdict(self)))


@dataclass(frozen=True, slots=True, kw_only=True)
class HighlightReply:
    """The sentences of a text that answer a question."""

    sentences: tuple[HighlightedSentence, ...]
    """Sentences in the order of the text."""
    has_answer: bool
    """Whether the best sentence is likely enough to contain the answer."""
    relevance_score: float
    """Relevance of the text, 0 to 1."""
    report: ReadingReport
    request_id: str

    def as_dict(self) -> dict[str, Any]:
        """Converts to JSON values."""
        return dict(json_value(asdict(self)))


def read_call(question: str, texts: Texts, options: Mapping[str, Any]) -> Call[ReadReply]:
    """The call that reads texts.

    Like every function here, raises InvalidRequestError if a value has the wrong type. The server
    checks limits.
    """
    fields = {"question": question, **_texts(texts), **options}
    return _call("ReadTexts", build_request(read_pb2.ReadTextsRequest, fields), _read_reply)


def rerank_call(question: str, texts: Texts, top_n: int | None) -> Call[RerankReply]:
    """The call that orders texts by relevance."""
    fields = {"question": question, **_texts(texts), "top_n": top_n}
    return _call("RerankTexts", build_request(read_pb2.RerankTextsRequest, fields), _rerank_reply)


def highlight_call(question: str, text: str, options: Mapping[str, Any]) -> Call[HighlightReply]:
    """The call that finds sentences of a text."""
    fields = {"question": question, "text": text, **options}
    message = build_request(read_pb2.HighlightTextRequest, fields)
    return _call("HighlightText", message, _highlight_reply)


def reading_of_message(message: read_pb2.TextReading) -> TextReading:
    """Converts a reading."""
    sentence = (message.sentence_start, message.sentence_end)
    return value_of_message(TextReading, message, id=message.passage_id, sentence=sentence)


def _read_reply(message: read_pb2.ReadTextsResponse) -> ReadReply:
    readings = tuple(map(reading_of_message, message.readings))
    return value_of_message(
        ReadReply,
        message,
        readings=readings,
        best=tuple(readings[index] for index in message.best),
        report=_report(message),
    )


def _rerank_reply(message: read_pb2.RerankTextsResponse) -> RerankReply:
    results = (value_of_message(RankedText, each, id=each.passage_id) for each in message.results)
    return value_of_message(RerankReply, message, results=tuple(results), report=_report(message))


def _highlight_reply(message: read_pb2.HighlightTextResponse) -> HighlightReply:
    sentences = tuple(value_of_message(HighlightedSentence, each) for each in message.sentences)
    return value_of_message(HighlightReply, message, sentences=sentences, report=_report(message))


def _report(message: Any) -> ReadingReport:
    return value_of_message(ReadingReport, message.report)


def _call(method: str, request: Any, result: Any) -> Call[Any]:
    return Call(read_pb2_grpc.ReadServiceStub, method, request, result)


def _texts(texts: Texts) -> dict[str, Any]:
    """Returns the field `texts`, or `passages` if a text has a title or an id."""
    if isinstance(texts, str) or not isinstance(texts, Sequence):
        raise InvalidRequestError(Violation("texts", "is not a list of texts"))
    if all(isinstance(each, str) for each in texts):
        return {"texts": texts}
    violations = [each for number, text in enumerate(texts) for each in _problems(number, text)]
    if violations:
        raise InvalidRequestError(*violations[:_MAX_VIOLATIONS])
    return {"passages": [{"text": each} if isinstance(each, str) else each for each in texts]}


def _problems(number: int, text: object) -> Iterator[Violation]:
    """Yields what is wrong with a text of a call."""
    if isinstance(text, str):
        return
    field = f"texts[{number}]"
    if not isinstance(text, Mapping):
        kind = type(text).__name__
        yield Violation(field, f"is neither a text nor a mapping, but of the type {kind}")
        return
    for key in sorted(text.keys() - TextFields.__annotations__.keys(), key=str):
        known = ", ".join(TextFields.__annotations__)
        yield Violation(field, f"has the key {quoted(str(key))}: known are {known}")
    if "text" not in text:
        yield Violation(field, "has no key 'text'")
    for key in sorted(text.keys() & TextFields.__annotations__.keys()):
        if not isinstance(text[key], str):
            kind = type(text[key]).__name__
            yield Violation(f"{field}.{key}", f"is not a text but of the type {kind}")
