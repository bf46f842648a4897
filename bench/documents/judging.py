"""Judges spans, sentences and passages against a question's accepted answers. Pure."""

import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from bench.documents.collection import Question
from winnow.text.scores import exact_match, f1

_SHARED = 0.5
"""Share of a sentence's words that another text has if it contains the sentence.

The two cuts and the converters split sentences differently, so a part of a sentence counts.
"""

_WORD = re.compile(r"\w+")
_ARTICLES = {"a", "an", "the"}
_QUOTES = str.maketrans("\u2018\u2019\u201c\u201d", "''\"\"")


@dataclass(frozen=True, slots=True)
class FoundPassage:
    """A passage of a reply."""

    document: str
    """Path of the document in the folder."""
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundAnswer:
    """The best answer of a reply, shown or not."""

    span: str
    sentence: str
    """The sentence, list item or table row that contains the span."""
    passage: FoundPassage
    score: float
    confidence: float | None
    """Probability that the span is right; None if the bundle has no confidence."""
    sentence_confidence: float | None = None
    """Probability that the sentence is right; None if the bundle has none."""

    @property
    def certainty(self) -> float:
        """What a threshold is compared with: the confidence, or the score without it."""
        return self.score if self.confidence is None else self.confidence


def is_right_span(span: str, question: Question) -> bool:
    """Returns whether the span is an accepted answer, but for case, articles and punctuation."""
    return exact_match(_composed(span), map(_composed, question.answers))


def span_f1(span: str, question: Question) -> float:
    """Returns the best F1 of words with any accepted answer, from 0 to 1."""
    return f1(_composed(span), map(_composed, question.answers))


def is_right_sentence(found: FoundAnswer, question: Question) -> bool:
    """Returns whether the sentence contains an accepted answer where it answers the question.

    That is: its span is right, or it is a part of the question's sentence.
    """
    if is_right_span(found.span, question):
        return True
    shared = max(
        shared_words(question.sentence, found.sentence),
        shared_words(found.sentence, question.sentence),
    )
    return (
        found.passage.document == question.document
        and contains_any(found.sentence, question.answers)
        and shared >= _SHARED
    )


def is_right_passage(found: FoundAnswer, question: Question) -> bool:
    """Returns whether the passage contains an accepted answer where it answers the question."""
    return is_right_sentence(found, question) or is_gold(found.passage, question)


def is_gold(passage: FoundPassage, question: Question) -> bool:
    """Returns whether the passage has the question's sentence with an accepted answer."""
    return (
        passage.document == question.document
        and contains_any(passage.text, question.answers)
        and shared_words(question.sentence, passage.text) >= _SHARED
    )


def contains_any(text: str, answers: Sequence[str]) -> bool:
    """Returns whether `text` contains the words of any answer, in their order."""
    return any(_contains(text, _words(text), each) for each in answers)


def shared_words(sentence: str, text: str) -> float:
    """Returns the share of the words of `sentence` that `text` has, from 0 to 1."""
    words = Counter(_words(sentence))
    if not words:
        return 0.0
    return (words & Counter(_words(text))).total() / words.total()


def _contains(text: str, words: Sequence[str], answer: str) -> bool:
    wanted = _words(answer)
    if not wanted:  # an answer of punctuation, such as `=`
        return answer in text
    ends = range(len(wanted), len(words) + 1)
    return any(words[end - len(wanted) : end] == wanted for end in ends)


def _words(text: str) -> list[str]:
    """Splits at punctuation, so that an answer is also found inside a path or an address."""
    return [each for each in _WORD.findall(_composed(text).lower()) if each not in _ARTICLES]


def _composed(text: str) -> str:
    """Returns the text with composed characters and ASCII quotes, which formats write variously."""
    return unicodedata.normalize("NFKC", text).translate(_QUOTES)
