"""Changes a premise of a question: a year, a number, a name, or a technical term.

A passage that answers the question does not answer the changed question, although it looks right.
A reader learns from such pairs to answer only what a passage says, as from the questions without
an answer of SQuAD 2.0 (Rajpurkar et al. 2018).
"""

import random
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from models.data import Question

_YEAR = re.compile(r"\b(?:1[0-9]|20)\d\d\b")
_NUMBER = re.compile(
    r"(?<![\w.,-])\d{1,3}(?:,\d{3})*(?:\.\d+)*(?![\w-])|\b\d{1,2}(?:st|nd|rd|th)\b"
)
_ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth", "seventh", "last")
_COUNTS = ("two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "twelve")
_ORDINAL, _COUNT = (
    re.compile(rf"\b(?:{'|'.join(words)})\b", re.IGNORECASE) for words in (_ORDINALS, _COUNTS)
)
_NAME = re.compile(
    r"\b[A-Z][\w'\u2019-]+(?: (?:of the |of |de |von |van |the |and )?[A-Z][\w'\u2019-]*\w)*"
)
_TERM = re.compile(r"(?<![\w.-])--?[a-z][\w-]*|\b\w+(?:[-_./:]+\w+)+\b|\b[A-Z]{2,}[A-Z0-9_]*\b")
"""An option, or a word with punctuation or capitals, as technical texts have them."""
_MIN_LETTERS, _ATTEMPTS, _ADD_YEAR_CHANCE = 4, 8, 0.3
_SENTENCE_ENDS = '.!?:;"\u201c('
_COMMON = frozenset(
    (
        *("what", "when", "where", "which", "who", "whom", "whose", "why", "how", "the", "this"),
        *("that", "these", "those", "there", "their", "they", "with", "from", "into", "during"),
        *("after", "before", "name", "does", "were", "have", "according", "many", "much", "some"),
        *("most", "other", "first", "second", "third", "last", "also", "both", "each", "part"),
        *("new", "january", "february", "march", "april", "june", "july", "august", "september"),
        *("october", "november", "december", "united", "states", "world", "would", "could"),
    )
)
"""Words whose change need not change what is asked."""
_ABOUT_TIME = re.compile(r"\b(?:when|year|date|how long|how old|century|decade)\b", re.I)
_ADD_YEAR = re.compile(r"\b(?:who|what|which|where|how many|how much)\b", re.I)


@dataclass(slots=True)
class PremiseChanger:
    """Changes questions with a random generator. Draws other names and terms from its pools."""

    generator: random.Random
    _names: dict[int, list[str]] = field(default_factory=dict)
    """Names by their number of words."""
    _terms: list[str] = field(default_factory=list)

    def learn_names(self, texts: Iterable[str]) -> None:
        """Adds the names in titles or passages to the pool."""
        names = {name for text in texts for name in _names(text)}
        for name in sorted(names):
            self._names.setdefault(len(name.split()), []).append(name)

    def learn_terms(self, texts: Iterable[str]) -> None:
        """Adds the technical terms of questions or passages to the pool."""
        self._terms += sorted({term for text in texts for term in _TERM.findall(text)})

    def change(self, question: Question) -> str | None:
        """Returns a question whose premise the gold passage lacks, or None if none is found."""
        assert question.gold is not None, "only a question with a passage can lack support"
        text, passage = question.text, f"{question.gold.title}\n{question.gold.text}"
        ways = [self._change_year, self._change_number, self._change_name, self._change_term]
        self.generator.shuffle(ways)
        for way in (*ways, self._add_year):
            changed = way(text, passage)
            if changed is not None:
                return changed
        return None

    def _change_year(self, text: str, passage: str) -> str | None:
        def other(year: str) -> str:
            return str(int(year) + self.generator.choice((-1, 1)) * self.generator.randint(1, 40))

        return self._replace(_YEAR, text, passage, other)

    def _change_number(self, text: str, passage: str) -> str | None:
        def other_number(number: str) -> str:
            value = int(re.sub(r"\D", "", number)) + self.generator.choice(
                (-3, -2, -1, 1, 2, 5, 10)
            )
            return str(max(value, 0)) + number[len(number.rstrip("stndrh")) :]

        def other_word(words: tuple[str, ...]) -> Callable[[str], str]:
            return lambda word: self.generator.choice([w for w in words if w != word.lower()])

        for pattern, other in (
            (_NUMBER, other_number),
            (_ORDINAL, other_word(_ORDINALS)),
            (_COUNT, other_word(_COUNTS)),
        ):
            changed = self._replace(pattern, text, passage, other)
            if changed is not None:
                return changed
        return None

    def _change_name(self, text: str, passage: str) -> str | None:
        """Replaces a name that question and passage share. The question may lack capitals."""
        capitals = text != text.lower()
        names = _names(text if capitals else passage)
        shared = [name for name in names if _contains(text, name) and _contains(passage, name)]
        if not shared:
            return None
        name = max(shared, key=lambda each: (len(each.split()), self.generator.random()))
        others = self._names.get(len(name.split()), [])
        pattern = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)", re.IGNORECASE)

        def other(_: str) -> str:
            drawn = self.generator.choice(others)
            return drawn if capitals else drawn.lower()

        return self._replace(pattern, text, passage, other) if others else None

    def _change_term(self, text: str, passage: str) -> str | None:
        def other(term: str) -> str:
            drawn = self.generator.choices(self._terms, k=40)
            return next((each for each in drawn if _are_alike(each, term)), term)

        return self._replace(_TERM, text, passage, other) if self._terms else None

    def _add_year(self, text: str, passage: str) -> str | None:
        """Adds a year that the passage lacks to a question about something that happened."""
        if self.generator.random() > _ADD_YEAR_CHANCE:
            return None
        if _ABOUT_TIME.search(text) or _YEAR.search(text) or not _ADD_YEAR.match(text):
            return None
        year = str(self.generator.randint(1850, 2035))
        return None if year in passage else f"{text.rstrip(' ?.')} in {year}?"

    def _replace(
        self, pattern: re.Pattern[str], text: str, passage: str, other: Callable[[str], str]
    ) -> str | None:
        """Replaces one match by another value that neither question nor passage has."""
        matches = list(pattern.finditer(text))
        if not matches:
            return None
        match = self.generator.choice(matches)
        for _ in range(_ATTEMPTS):
            value = other(match.group())
            if not _contains(passage, value) and not _contains(text, value):
                return text[: match.start()] + value + text[match.end() :]
        return None


def _contains(text: str, phrase: str) -> bool:
    """Returns whether a text contains a phrase as whole words, in any case."""
    return bool(re.search(rf"(?<!\w){re.escape(phrase)}(?!\w)", text, re.IGNORECASE))


def _are_alike(one: str, other: str) -> bool:
    """Returns whether both terms are options, both in capitals, or neither."""
    return (one.startswith("-"), one.isupper()) == (other.startswith("-"), other.isupper())


def _names(text: str) -> list[str]:
    """Returns the names in a text. A single word at the beginning of a sentence is no name."""
    names = []
    for match in _NAME.finditer(text):
        name, before = match.group().removesuffix("'s"), text[: match.start()].rstrip()
        words = name.lower().split()
        starts = len(words) == 1 and (not before or before[-1] in _SENTENCE_ENDS)
        if len(name) >= _MIN_LETTERS and not starts and not _COMMON.intersection(words):
            names.append(name)
    return names
