"""Makes cloze questions, whose answer is a phrase of a passage's sentence.

There are few real training questions, and a reader soon memorises them. Cloze questions can be made
from all of Wikipedia. A sentence becomes a question by rules, as in Lewis et al. 2019
("Unsupervised question answering by cloze translation"). A question word replaces the phrase and
often moves to the front, and some words are dropped.
"""

import random
import re
from dataclasses import dataclass

from models.data import Passage

_MIN_WORDS, _MAX_WORDS = 7, 26
"""Length of a suitable sentence, in words."""
_MIN_CONTEXT = 4
"""Minimum number of words in a sentence, besides the phrase."""
_MOVE_TO_FRONT, _USE_WHICH, _DROP_WORD, _ADD_QUESTION_MARK = 0.7, 0.3, 0.1, 0.5
"""Probabilities of changes to a question. `_USE_WHICH` is the change of "what" to "which"."""

_SENTENCE = re.compile(
    r"(?:(?<=\w{3}[.!?])|(?<=[)\"\u201d][.!?])|(?<=[.!?][)\"\u201d]))\s+(?=[A-Z\"\u201c])"
)
"""Boundary of two sentences. A full stop after one or two letters more likely ends an abbreviation.
"""
_MONTH = "(?:January|February|March|April|May|June|July|August|September|October|November|December)"
_DATE = re.compile(
    rf"(?<![\w.,$])(?:{_MONTH} \d{{1,2}}, |\d{{1,2}} {_MONTH} |{_MONTH} )?(?:1\d|20)\d\ds?\b"
    rf"|\b{_MONTH} \d{{1,2}}\b|\b\d{{1,2}}(?:st|nd|rd|th) century\b"
)
_NUMBER = re.compile(
    r"(?<![\w.,-])\d[\d,.]*\d(?: (?:million|billion|percent|%))?(?![\w-])"
    r"|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|fifty) (?=[a-z]+s\b)"
)
_NAME = re.compile(
    r"\b(?:(?:St|Mt|Dr)\. )?[A-Z][\w'\u2019-]+"
    r"(?: (?:of the |of |de |von |van |and )?[A-Z][\w'\u2019.-]*\w)*"
)
_NOUN_PHRASE = re.compile(
    r"\b(?:a|an|the) ((?:[a-z]{2,} ){0,2}[a-z]{3,})"
    r"(?=[,.;]| (?:of|in|and|for|to|from|with|by|that|which|who|is|was|are|were|has|had|on|at)\b)"
)
_PATTERNS = ((_DATE, "when"), (_NUMBER, "how many"), (_NAME, ""), (_NOUN_PHRASE, "what"))
"""Patterns of phrases, with their question words. The word for a name depends on its context."""
_NUMBER_WORDS = ("when", "how many")

_BEFORE_LOCATION = re.compile(r"\b(?:in|at|near|from|into|to)$")
_BEFORE_PERSON = re.compile(r"\b(?:by|with|named|called|Mr\.|President|King|Queen|Sir)$")
_AFTER_PERSON = re.compile(r" (?:was born|said|wrote|died|believed|married|argued|served)\b")
_PREPOSITION = re.compile(r"\b(?:in|on|at|near|during|since|by|of)$")
_ARTICLE = re.compile(r"\b(?:a|an|the)\s*$", re.IGNORECASE)
_PRONOUN = re.compile(r"^(?:(?P<subject>He|She|It|They)|His|Her|Its|Their)\b")
_TRAILING = re.compile(r"(?:['\u2019]s?|[ .,]+)$")
_EMPTY_BRACKETS = re.compile(r"[(\"\u201c]\s*[)\"\u201d]")
_FUNCTION_WORDS = frozenset(
    (
        *("the", "a", "an", "it", "he", "she", "they", "his", "her", "its", "their", "this"),
        *("that", "these", "those", "there", "some", "many", "most", "all", "both", "each"),
        *("in", "on", "at", "as", "by", "for", "from", "to", "of", "with", "and", "but", "or"),
        *("if", "when", "while", "after", "before", "during", "since", "however", "although"),
        *("though", "because"),
    )
)
"""Words that may begin a sentence, but not a name or noun phrase."""


@dataclass(frozen=True, slots=True)
class Cloze:
    """A question and its answer, a phrase of a passage."""

    question: str
    answer: str


def make_cloze(passage: Passage, generator: random.Random) -> Cloze | None:
    """Returns a cloze question of a random sentence, or None if no sentence is suitable."""
    sentences = _sentences(passage.text)
    generator.shuffle(sentences)
    for sentence in sentences:
        phrases = _phrases(sentence, passage.title)
        if phrases:
            phrase = generator.choice(phrases)
            return Cloze(_make_question(phrase, generator), phrase.text)
    return None


@dataclass(frozen=True, slots=True)
class _Phrase:
    """A phrase of a sentence, with its question word and the text around it."""

    text: str
    question_word: str
    before: str
    after: str

    @property
    def is_suitable(self) -> bool:
        """Whether the context is long enough and does not contain the phrase."""
        context = f"{self.before} {self.after}"
        return len(context.split()) >= _MIN_CONTEXT and self.text.lower() not in context.lower()


def _sentences(text: str) -> list[str]:
    """Returns the complete sentences of suitable length.

    A passage may begin or end within a sentence.
    """
    return [
        sentence
        for sentence in _SENTENCE.split(text.strip())
        if sentence[:1].isupper()
        and sentence.endswith((".", '."', ".\u201d"))
        and _MIN_WORDS <= len(sentence.split()) <= _MAX_WORDS
    ]


def _phrases(sentence: str, title: str) -> list[_Phrase]:
    """Returns the suitable phrases of a sentence. Phrases do not overlap."""
    phrases: list[_Phrase] = []
    matched: list[range] = []
    for pattern, word in _PATTERNS:
        for match in pattern.finditer(sentence):
            start, end = match.span(match.lastindex or 0)
            text = _TRAILING.sub("", sentence[start:end])
            end = start + len(text)
            if any(start < each.stop and each.start < end for each in matched):
                continue
            matched.append(range(start, end))
            before, after = sentence[:start], sentence[end:]
            question_word = word or _question_word_for_name(before, after)
            phrase = _Phrase(text, question_word, _resolve_pronoun(before, title), after)
            if (word in _NUMBER_WORDS or _is_name_or_noun(text, start)) and phrase.is_suitable:
                phrases.append(phrase)
    return phrases


def _is_name_or_noun(text: str, start: int) -> bool:
    """Returns whether `text` is a name or noun phrase, not just the beginning of a sentence."""
    words = text.split()
    is_first_word = start == 0 and len(words) == 1  # has a capital letter, but may be no name
    return bool(words) and not is_first_word and words[0].lower() not in _FUNCTION_WORDS


def _question_word_for_name(before: str, after: str) -> str:
    before = before.rstrip()
    if _BEFORE_LOCATION.search(before):
        return "where"
    return "who" if _BEFORE_PERSON.search(before) or _AFTER_PERSON.match(after) else "what"


def _resolve_pronoun(before: str, title: str) -> str:
    """Replaces a pronoun at the beginning of a sentence by the passage's title."""
    match = _PRONOUN.match(before)
    if match is None or not title:
        return before
    return (title if match["subject"] else f"{title}'s") + before[match.end() :]


def _make_question(phrase: _Phrase, generator: random.Random) -> str:
    """Returns the context of a phrase as a question."""
    before, after = (
        " ".join(each for each in part.split() if generator.random() >= _DROP_WORD)
        for part in (phrase.before, phrase.after.rstrip(' ."\u201d'))
    )
    word = phrase.question_word
    order = (before, word, after)
    if before and generator.random() < _MOVE_TO_FRONT:
        if word in ("when", "where"):
            before = _PREPOSITION.sub("", before)
        elif word == "what" and generator.random() < _USE_WHICH:
            word = "which"
        before = _ARTICLE.sub("", before)
        order = (word, after, before) if word == "how many" else (word, before, after)
    question = re.sub(r"\s+", " ", _EMPTY_BRACKETS.sub(" ", " ".join(order)))
    question = re.sub(r"\s+([,;:'\u2019])", r"\1", question).strip(" ,;:")
    return question + ("?" if generator.random() < _ADD_QUESTION_MARK else "")
