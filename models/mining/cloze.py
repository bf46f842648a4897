"""Cloze questions: the answer is a phrase of a sentence of a passage.

Readers are trained with few real questions and soon know them by heart, while there is Wikipedia
without end. A sentence becomes a question as in Lewis et al. 2019 ("Unsupervised question answering
by cloze translation"), by rules alone: its phrase is replaced by a question word, which often moves
to the front, and some of its words are dropped. Pure functions of text and a random generator.
"""

import random
import re
from dataclasses import dataclass

from models.data import Passage

_LEAST, _MOST = 7, 26
"""Words of a sentence that is long enough to say something, and short enough to be asked."""
_LEFT = 4
"""Words that are left of it at least."""
_IN_FRONT, _WHICH, _DROPPED, _MARKED = 0.7, 0.3, 0.1, 0.5
"""Probabilities that the question word moves to the front, that "what" becomes "which", that a word
is left out, and that the question ends in a question mark.
"""

_SENTENCE = re.compile(
    r"(?:(?<=\w{3}[.!?])|(?<=[)\"\u201d][.!?])|(?<=[.!?][)\"\u201d]))\s+(?=[A-Z\"\u201c])"
)
"""Boundary of two sentences. A full stop after one or two letters more likely abbreviates."""
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
_THING = re.compile(
    r"\b(?:a|an|the) ((?:[a-z]{2,} ){0,2}[a-z]{3,})"
    r"(?=[,.;]| (?:of|in|and|for|to|from|with|by|that|which|who|is|was|are|were|has|had|on|at)\b)"
)
_PATTERNS = ((_DATE, "when"), (_NUMBER, "how many"), (_NAME, ""), (_THING, "what"))
"""Phrases that can be asked for, and the question word; that of a name depends on its context."""
_BY_NUMBER = ("when", "how many")

_AFTER_PLACE = re.compile(r"\b(?:in|at|near|from|into|to)$")
_AFTER_PERSON = re.compile(r"\b(?:by|with|named|called|Mr\.|President|King|Queen|Sir)$")
_BEFORE_PERSON = re.compile(r" (?:was born|said|wrote|died|believed|married|argued|served)\b")
_PREPOSITION = re.compile(r"\b(?:in|on|at|near|during|since|by|of)$")
_ARTICLE = re.compile(r"\b(?:a|an|the)\s*$", re.IGNORECASE)
_PRONOUN = re.compile(r"^(?:(?P<who>He|She|It|They)|His|Her|Its|Their)\b")
_TAIL = re.compile(r"(?:['\u2019]s?|[ .,]+)$")
_EMPTY = re.compile(r"[(\"\u201c]\s*[)\"\u201d]")
_COMMON = frozenset(
    (
        *("the", "a", "an", "it", "he", "she", "they", "his", "her", "its", "their", "this"),
        *("that", "these", "those", "there", "some", "many", "most", "all", "both", "each"),
        *("in", "on", "at", "as", "by", "for", "from", "to", "of", "with", "and", "but", "or"),
        *("if", "when", "while", "after", "before", "during", "since", "however", "although"),
        *("though", "because"),
    )
)
"""Words that no name and no thing begins with, though they may begin a sentence."""


@dataclass(frozen=True, slots=True)
class Cloze:
    """A question, and the phrase of a passage that answers it."""

    question: str
    answer: str


def cloze(passage: Passage, generator: random.Random) -> Cloze | None:
    """Returns a cloze question from a random sentence of the passage.

    Returns None if no sentence is suitable.
    """
    sentences = _sentences(passage.text)
    generator.shuffle(sentences)
    for sentence in sentences:
        phrases = _phrases(sentence, passage.title)
        if phrases:
            phrase = generator.choice(phrases)
            return Cloze(_ask(phrase, generator), phrase.text)
    return None


@dataclass(frozen=True, slots=True)
class _Phrase:
    """A phrase that can be asked for, with its question word and its context."""

    text: str
    word: str
    before: str
    after: str

    @property
    def can_be_asked_for(self) -> bool:
        """Whether the context is long enough, and does not contain the phrase."""
        around = f"{self.before} {self.after}"
        return len(around.split()) >= _LEFT and self.text.lower() not in around.lower()


def _sentences(text: str) -> list[str]:
    """Whole sentences of a fit length. A passage may begin and end in the middle of one."""
    return [
        sentence
        for sentence in _SENTENCE.split(text.strip())
        if sentence[:1].isupper()
        and sentence.endswith((".", '."', ".\u201d"))
        and _LEAST <= len(sentence.split()) <= _MOST
    ]


def _phrases(sentence: str, title: str) -> list[_Phrase]:
    """Returns phrases that can be asked for; they do not overlap."""
    found: list[_Phrase] = []
    taken: list[range] = []
    for pattern, word in _PATTERNS:
        for match in pattern.finditer(sentence):
            start, end = match.span(match.lastindex or 0)
            text = _TAIL.sub("", sentence[start:end])
            end = start + len(text)
            if any(start < each.stop and each.start < end for each in taken):
                continue
            taken.append(range(start, end))
            before, after = sentence[:start], sentence[end:]
            asked_by = word or _word_for_name(before, after)
            phrase = _Phrase(text, asked_by, _named(before, title), after)
            if (word in _BY_NUMBER or _stands_alone(text, start)) and phrase.can_be_asked_for:
                found.append(phrase)
    return found


def _stands_alone(text: str, start: int) -> bool:
    """Returns whether words are a name or a thing, and not just the beginning of a sentence."""
    words = text.split()
    begins = start == 0 and len(words) == 1  # its capital says nothing
    return bool(words) and not begins and words[0].lower() not in _COMMON


def _word_for_name(before: str, after: str) -> str:
    before = before.rstrip()
    if _AFTER_PLACE.search(before):
        return "where"
    return "who" if _AFTER_PERSON.search(before) or _BEFORE_PERSON.match(after) else "what"


def _named(before: str, title: str) -> str:
    """Returns a sentence's beginning without the pronoun that only its passage explains."""
    match = _PRONOUN.match(before)
    if match is None or not title:
        return before
    return (title if match["who"] else f"{title}'s") + before[match.end() :]


def _ask(phrase: _Phrase, generator: random.Random) -> str:
    """Returns a question for a phrase, made of its context."""
    before, after = (
        " ".join(each for each in part.split() if generator.random() >= _DROPPED)
        for part in (phrase.before, phrase.after.rstrip(' ."\u201d'))
    )
    word = phrase.word
    order = (before, word, after)
    if before and generator.random() < _IN_FRONT:
        if word in ("when", "where"):
            before = _PREPOSITION.sub("", before)
        elif word == "what" and generator.random() < _WHICH:
            word = "which"
        before = _ARTICLE.sub("", before)
        order = (word, after, before) if word == "how many" else (word, before, after)
    asked = re.sub(r"\s+", " ", _EMPTY.sub(" ", " ".join(order)))
    asked = re.sub(r"\s+([,;:'\u2019])", r"\1", asked).strip(" ,;:")
    return asked + ("?" if generator.random() < _MARKED else "")
