"""Validates requests to read texts, and fills in the options that they do not set. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from winnow.domain.text_reading import (
    HighlightTextRequest,
    ReadTextsRequest,
    RerankTextsRequest,
    TextToRead,
)
from winnow.errors import Violation
from winnow.stateless.answer.validation import (
    MAX_ANSWER_TOKENS,
    count_violations,
    min_confidence_violations,
    question_violations,
)
from winnow.stateless.heads.validation import raise_if_any

MAX_TEXTS = 1_000
MAX_TOTAL_CHARACTERS = 1_000_000
"""Maximum number of characters of all texts and titles of a request."""
MAX_TITLE_CHARACTERS = 1_000
MAX_SENTENCES = 100
_DEFAULT_ANSWERS, _DEFAULT_SENTENCES = 3, 3


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadingDefaults:
    """The values of options that depend on the bundle."""

    max_answer_tokens: int
    has_confidence: bool
    """Whether spans have a confidence, so that requests may set a minimum."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadOptions:
    """The options of a request to read, with a value for each option that has a default."""

    answers: int
    max_answer_tokens: int
    min_confidence: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HighlightOptions:
    """The options of a request to highlight, with a value for each option that has a default."""

    sentences: int
    max_answer_tokens: int
    min_confidence: float | None


def checked_read(request: ReadTextsRequest, defaults: ReadingDefaults) -> ReadOptions:
    """Checks a request; returns its options.

    Like every function here, raises InvalidRequestError, which names every invalid field.
    """
    raise_if_any(
        [
            *question_violations(request.question),
            *_text_violations(request.texts),
            *count_violations("answers", request.answers, MAX_TEXTS),
            *count_violations("max_answer_tokens", request.max_answer_tokens, MAX_ANSWER_TOKENS),
            *min_confidence_violations(request.min_confidence, defaults.has_confidence),
        ]
    )
    return ReadOptions(
        answers=request.answers or _DEFAULT_ANSWERS,
        max_answer_tokens=request.max_answer_tokens or defaults.max_answer_tokens,
        min_confidence=request.min_confidence,
    )


def checked_rerank(request: RerankTextsRequest) -> int:
    """Checks a request; returns the maximum number of results."""
    raise_if_any(
        [
            *question_violations(request.question),
            *_text_violations(request.texts),
            *count_violations("top_n", request.top_n, MAX_TEXTS),
        ]
    )
    return request.top_n or len(request.texts)


def checked_highlight(request: HighlightTextRequest, defaults: ReadingDefaults) -> HighlightOptions:
    """Checks a request; returns its options."""
    text = request.text
    raise_if_any(
        [
            *question_violations(request.question),
            *_length_violations("text", text.text, MAX_TOTAL_CHARACTERS),
            *_length_violations("title", text.title, MAX_TITLE_CHARACTERS),
            *([] if text.text else [Violation("text", "is empty: send the text to highlight")]),
            *count_violations("sentences", request.sentences, MAX_SENTENCES),
            *count_violations("max_answer_tokens", request.max_answer_tokens, MAX_ANSWER_TOKENS),
            *min_confidence_violations(request.min_confidence, defaults.has_confidence),
        ]
    )
    return HighlightOptions(
        sentences=request.sentences or _DEFAULT_SENTENCES,
        max_answer_tokens=request.max_answer_tokens or defaults.max_answer_tokens,
        min_confidence=request.min_confidence,
    )


def _text_violations(texts: Sequence[TextToRead]) -> Iterator[Violation]:
    if not 1 <= len(texts) <= MAX_TEXTS:
        yield Violation("texts", f"has {len(texts)} texts, 1 to {MAX_TEXTS} are allowed")
        return
    total = sum(len(each.text) + len(each.title) for each in texts)
    if total > MAX_TOTAL_CHARACTERS:
        yield Violation(
            "texts",
            f"has {total} characters in total, at most {MAX_TOTAL_CHARACTERS} are allowed: send "
            "several requests",
        )
    for number, each in enumerate(texts):
        yield from _length_violations(f"passages[{number}].title", each.title, MAX_TITLE_CHARACTERS)


def _length_violations(field: str, text: str, limit: int) -> Iterator[Violation]:
    if len(text) > limit:
        yield Violation(field, f"has {len(text)} characters, at most {limit} are allowed")
