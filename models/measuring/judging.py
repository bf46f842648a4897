"""Judges spans, sentences and passages against the accepted answers of a question. Pure."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from models.data import Passage
from winnow.text.scores import exact_match

_SHARED = 0.5
"""Share of a sentence's words that another text has if it contains the sentence."""
_WORD = re.compile(r"\w+")
_ARTICLES = {"a", "an", "the"}


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedQuestion:
    """A question whose answers can be judged."""

    text: str
    answers: tuple[str, ...]
    """Accepted answers; none if no passage answers the question."""
    sentence: str = ""
    """The sentence that contains the answer; empty if an answer may be in any sentence."""

    def accepts_span(self, span: str) -> bool:
        """Returns whether the span is an accepted answer."""
        return exact_match(span, self.answers)

    def accepts_sentence(self, sentence: str) -> bool:
        """Returns whether the sentence contains an answer, and is a part of the expected one."""
        return self._is_in(sentence) and (
            not self.sentence
            or _shared_words(self.sentence, sentence) >= _SHARED
            or _shared_words(sentence, self.sentence) >= _SHARED
        )

    def accepts_passage(self, passage: Passage) -> bool:
        """Returns whether title or text contain an answer, and the text the expected sentence."""
        return self._is_in(f"{passage.title}\n{passage.text}") and (
            not self.sentence or _shared_words(self.sentence, passage.text) >= _SHARED
        )

    def _is_in(self, text: str) -> bool:
        """Returns whether the text has the words of any answer, in their order."""
        words = _words(text)
        return any(_contains(words, _words(answer)) for answer in self.answers)


def _contains(words: Sequence[str], part: Sequence[str]) -> bool:
    ends = range(len(part), len(words) + 1)
    return bool(part) and any(words[end - len(part) : end] == part for end in ends)


def _shared_words(first: str, second: str) -> float:
    """Returns the share of the words of `first` that `second` has, from 0 to 1."""
    words, others = Counter(_words(first)), Counter(_words(second))
    return (words & others).total() / max(words.total(), 1)


def _words(text: str) -> list[str]:
    """Splits at punctuation, so that an answer is also found inside a path or an address."""
    return [word for word in _WORD.findall(text.lower()) if word not in _ARTICLES]
