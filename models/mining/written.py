"""Makes questions from the structure of technical documents: options, definitions, defaults.

A list item such as `--all: show hidden files` answers what the option does, and which option shows
hidden files. Rules turn items and sentences into questions, as `models.mining.cloze` does with
sentences alone.
"""

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from models.data import Passage
from models.mining.cloze import make_cloze
from models.mining.document_files import CLOZES, RULES
from winnow.documents.document import BlockKind, Document
from winnow.documents.passages import document_passages

_MAX_ANSWER_WORDS, _MIN_ANSWER_WORDS, _MAX_TERM_WORDS = 8, 2, 4
_ASK_FOR_MEANING = 0.5
"""Probability to ask for the meaning of a term, and not for the term."""
_ITEMS = (BlockKind.LIST_ITEM, BlockKind.TABLE_ROW)
_ENTRY = re.compile(
    r"(?P<term>\S[^\n]{0,70}?)(?::| [\u2013\u2014-]{1,2}) (?P<body>\S.*)", re.DOTALL
)
"""An item or row with a term and what it means."""
_OPTION = re.compile(r"(?<![\w-])--?[A-Za-z][\w-]*")
_CLAUSE_END = re.compile(
    r"[.;:(,](?:\s|$)|\n| (?:if|when|which|that|so|instead|unless|because|and then|but|where|see) "
)
_DEFAULT = re.compile(
    r"\b(?:the default(?: value)? is|defaults to|default:|by default,? it is|default value:)\s+"
    r"(?P<value>[\"'`\u201c\u2018]?[\w./:*%+-]+"
    r"(?: (?:seconds?|minutes?|bytes|days?|hours?|MB|KB|ms))?)",
    re.IGNORECASE,
)
_NO_VALUES = ("the", "a", "an", "to", "that", "this", "on", "off")
_VERB = re.compile(r"[a-z]{2,}")
_NOT_VERBS = frozenset(
    [
        "the",
        "this",
        "if",
        "a",
        "an",
        "like",
        "same",
        "as",
        "with",
        "for",
        "in",
        "on",
        "see",
        "by",
        "to",
        "use",
        "used",
        "when",
        "not",
        "no",
        "is",
        "are",
        "it",
        "or",
        "and",
        "of",
        "at",
        "from",
        "only",
        "also",
        "these",
        "that",
        "any",
        "all",
        "each",
        "optional",
        "default",
        "deprecated",
        "equivalent",
    ]
)
_EMPTY = re.compile(
    r"(?:by default|new in|deprecated|equivalent to|see|same as|default|type|note|example|required|"
    r"optional|added in|changed in|returns?|history|examples|usage)\b",
    re.IGNORECASE,
)
"""Beginnings of terms and meanings that say nothing."""
_TRAILING = " .,;:\"'`\u201c\u201d\u2018\u2019()"


@dataclass(frozen=True, slots=True, kw_only=True)
class WrittenQuestion:
    """A question made from a document, with its passage."""

    question: str
    answers: tuple[str, ...]
    """Accepted answers; the first one is in the passage."""
    passage: Passage
    start: int
    """First character of the first answer in the text of the passage."""
    source: str
    """`RULES` or `CLOZES`."""


def titled_passages(document: Document, name: str) -> list[tuple[range, Passage]]:
    """Returns the passages of a document and their ranges in its text, as an index has them.

    `name` is the path of the document, from which it gets a title if it has none.
    """
    return [
        (range(int(str(each.metadata["start"])), int(str(each.metadata["end"]))), passage)
        for each in document_passages(name, document, digest="")
        for passage in (Passage(each.title, each.text),)
    ]


def written_questions(
    document: Document, passages: Sequence[tuple[range, Passage]], generator: random.Random
) -> Iterator[WrittenQuestion]:
    """Yields questions about the items of a document, about defaults, and cloze questions."""
    for block in document.blocks:
        item = document.text[block.start : block.end]
        match = _ENTRY.match(item) if block.kind in _ITEMS else None
        passage = next((each for place, each in passages if block.start in place), None)
        if match is None or passage is None:
            continue
        entry = Entry(document.title, match["term"].strip(), " ".join(match["body"].split()))
        for question, answers in _about(entry, generator):
            yield from _placed(question, answers, passage, item)
    for _, passage in passages:
        cloze = make_cloze(passage, generator)
        if cloze is not None:
            yield from _placed(cloze.question, (cloze.answer,), passage, passage.text, CLOZES)


def _placed(
    question: str, answers: tuple[str, ...], passage: Passage, item: str, source: str = RULES
) -> Iterator[WrittenQuestion]:
    """Yields a question with the place of its first answer, if that is found in `item`."""
    first = max(passage.text.find(item), 0)
    match = re.search(rf"(?<!\w){re.escape(answers[0])}(?!\w)", passage.text[first:])
    if match is not None:
        yield WrittenQuestion(
            question=question,
            answers=answers,
            passage=passage,
            start=first + match.start(),
            source=source,
        )


@dataclass(frozen=True, slots=True)
class Entry:
    """A term of a document, and what the document says about it."""

    title: str
    """Title of the document."""
    term: str
    body: str


def _about(entry: Entry, generator: random.Random) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Yields at most two questions about an entry, with their answers."""
    options = _OPTION.findall(entry.term) if entry.term.startswith("-") else []
    name = max(options, key=len) if options else entry.term.split(",")[0].strip(_TRAILING)
    if not name or len(name.split()) > _MAX_TERM_WORDS or _EMPTY.match(name):
        return

    def ask(forms: Sequence[str], **more: str) -> str:
        return generator.choice(forms).format(term=name, title=entry.title, **more)

    default = _DEFAULT.search(entry.body)
    value = default["value"].strip(_TRAILING) if default else ""
    if value and value.lower() not in _NO_VALUES:
        yield ask(_DEFAULT_FORMS), (value,)
    meaning = _first_clause(entry.body)
    if meaning is None:
        return
    lower = meaning[0].lower() + meaning[1:]
    if generator.random() < _ASK_FOR_MEANING:
        yield ask(_OPTION_FORMS if options else _TERM_FORMS), (meaning,)
    elif not options:
        yield ask(_NAME_FORMS, meaning=lower), (name,)
    elif _starts_with_verb(lower):
        others = (each for each in options if each != name)
        yield ask(_ACTION_FORMS, action=_without_s(lower)), (name, *others)


def _starts_with_verb(meaning: str) -> bool:
    """Returns whether a meaning begins with a verb."""
    verb = _VERB.match(meaning)
    return verb is not None and verb[0] not in _NOT_VERBS


_OPTION_FORMS = (
    "What does {term} do in {title}?",
    "What does the option {term} of {title} do?",
    "What is {term} for?",
    "what does {title} {term} do",
    "What does {term} mean?",
    "What is the effect of {term}?",
)
_ACTION_FORMS = (
    "Which option makes {title} {action}?",
    "How do I {action} with {title}?",
    "Which option of {title} is used to {action}?",
    "How can I make {title} {action}?",
    "which flag to {action}",
    "What option do I need to {action}?",
    "How do I tell {title} to {action}?",
)
_TERM_FORMS = (
    "What is {term}?",
    "What does {term} mean?",
    "What is {term} in {title}?",
    "What is meant by {term}?",
    "What is {term} used for?",
    "what is {term}",
    "What does {term} do?",
)
_NAME_FORMS = (
    "What is the name of {meaning}?",
    "What is {meaning} called?",
    "What is {meaning} called in {title}?",
    "Which one is {meaning}?",
    "what is the term for {meaning}",
)
_DEFAULT_FORMS = (
    "What is the default of {term}?",
    "What is the default value of {term} in {title}?",
    "What does {term} default to?",
    "what is the default {term}",
    "Which value does {term} have if it is not set?",
)


def _first_clause(body: str) -> str | None:
    """Returns the first clause of a meaning, if it is short enough for an answer."""
    end = _CLAUSE_END.search(body)
    clause = (body if end is None else body[: end.start()]).strip(_TRAILING)
    words = len(clause.split())
    if _EMPTY.match(clause):
        return None
    return clause if _MIN_ANSWER_WORDS <= words <= _MAX_ANSWER_WORDS else None


def _without_s(action: str) -> str:
    """Returns an action with its verb in the base form: `prints all` becomes `print all`."""
    verb, _, rest = action.partition(" ")
    if verb.endswith(("ches", "shes", "sses", "xes")):
        verb = verb[:-2]
    elif verb.endswith("ies"):
        verb = f"{verb[:-3]}y"
    elif verb.endswith("s") and not verb.endswith("ss"):
        verb = verb[:-1]
    return f"{verb} {rest}".strip()
