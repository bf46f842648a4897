"""Tokenises public data and writes the token ids as a pack."""

import random
import string
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from tokenizers import Tokenizer

from models.data import DEVELOPMENT, DataDirectory, Passage, Question
from models.mining.cloze import make_cloze
from models.mining.document_files import (
    CLOZES,
    read_document_passages,
    read_document_questions,
)
from models.mining.held_out import is_held_out
from models.mining.premises import PremiseChanger
from models.packed.arrays import (
    CHANGED,
    CHANGED_IN_DOCUMENTS,
    CHANGED_SOURCES,
    CLOZE,
    MAX_ANSWER_TOKENS,
    MAX_ANSWERS,
    NO_ANSWER,
    SENTENCE_SOURCES,
    TRAINING,
    UNKNOWN,
    PackedPassages,
    PackedQuestions,
    save_arrays,
)
from models.progress import track
from models.training.examples import token_span
from winnow.passages.encoding import MAX_TITLE_TOKENS
from winnow.text.scores import normalise

MAX_QUESTION_TOKENS = 62
_SMALL_STRIDE, _MAX_SMALL = 11, 60_000
"""Wikipedia passages of the smaller index: every 11th, at most 60,000, as `bench corpus` writes."""
_BATCH = 2_000
MAX_PAIRS = {
    "nq-open-train-50k": 50_000,
    "ambignq-train": 12_000,
    "ambignq-train-disambiguated": 15_000,
    "squad-train-questions": 30_000,
    "opentriviaqa": 12_000,
    "freebaseqa-dev-eval": 7_000,
    "popqa": 5_000,
    "entityquestions-train": 8_000,
    "mintaka-dev": 2_000,
    "mkqa-en-dev": 2_000,
    "triviaqa-stevedillard": 2_000,
}
"""Maximum number of additional questions of each source. Multi-hop questions are left out."""
_ARTICLES = ("a", "an", "the")


@dataclass(frozen=True, slots=True, kw_only=True)
class PackPlan:
    """Which questions and passages are packed for training on a GPU."""

    clozes: int
    """Number of cloze questions to make of sentences of Wikipedia."""
    keep_every: int = 1
    """With n, only every n-th passage and question of Wikipedia is packed."""
    wikipedia: float = 1.0
    """Share of Wikipedia to pack, in addition to the passages of the small index: 0 to 1."""
    documents: Path | None = None
    """Directory of questions about documents (`winnow models ask-documents`)."""
    changed: int = 0
    """Maximum number of questions with a changed premise, of Wikipedia and of documents each."""


def write_pack(data: DataDirectory, tokenizer: Tokenizer, directory: Path, plan: PackPlan) -> int:
    """Writes a pack of passages and questions, and returns the number of training questions."""
    every = plan.keep_every
    wikipedia, small = _draw_wikipedia(data.wikipedia(every), plan.wikipedia)
    development = {name: data.development(name)[::every] for name in DEVELOPMENT}
    unseen = _UnseenFilter(question for each in development.values() for question in each)
    gold = unseen.filter([*data.gold(), *data.extra_questions_with_gold()])[::every]
    pairs = unseen.filter([*data.pairs(), *_draw_pairs(data.extra_questions_without_gold())])
    asked = read_document_questions(plan.documents)[::every] if plan.documents else []
    documents = read_document_passages(plan.documents) if plan.documents else {}
    about = [each.as_question for each in asked]
    premises = _questions_with_changed_premises(gold, about, plan.changed)
    made = _make_clozes(wikipedia, development, plan.clozes)
    contexts = {
        name: list(dict.fromkeys(q.gold for q in each if q.gold is not None))
        for name, each in {**development, TRAINING: [*gold, *about]}.items()
    }
    contexts[TRAINING] = list(dict.fromkeys([*contexts[TRAINING], *documents]))
    passages = [*wikipedia, *(passage for each in contexts.values() for passage in each)]
    first = len(wikipedia)
    rows_of = {}
    for name, each in contexts.items():
        rows_of[name] = {passage: first + number for number, passage in enumerate(each)}
        first += len(each)
    ours = np.arange(len(wikipedia), first, dtype=np.int32)
    developed = len(rows_of["dev-squad"]) + len(rows_of["dev-nq"])
    sentences = {q.gold for q in gold if q.source in SENTENCE_SOURCES}
    is_whole = [passage not in sentences for passage in contexts[TRAINING]]
    all_wikipedia = np.arange(len(wikipedia), dtype=np.int32)
    save_arrays(
        directory / "passages",
        _pack_passages(
            passages,
            tokenizer,
            held_out=[is_held_out(each) or documents.get(each, False) for each in passages],
            small=np.concatenate([all_wikipedia[small], ours[:developed]]),
            large=np.concatenate([all_wikipedia, ours[:developed]]),
            mined=np.concatenate([all_wikipedia, ours[developed:][is_whole]]),
        ),
    )
    for name, questions in development.items():
        save_arrays(directory / name, _pack_questions(questions, rows_of[name], tokenizer))
    training = [*gold, *about, *premises, *pairs[::every], *(question for _, question in made)]
    packed = _pack_questions(training, rows_of[TRAINING], tokenizer)
    packed.gold[len(training) - len(made) :] = [row for row, _ in made]
    save_arrays(directory / TRAINING, packed)
    return len(packed)


def _draw_wikipedia(passages: Sequence[Passage], share: float) -> tuple[list[Passage], list[int]]:
    """Returns passages of the smaller index with a random share of the others.

    Also returns the indices of the passages of the smaller index.
    """
    generator = random.Random(0)
    drawn: list[Passage] = []
    small: list[int] = []
    for row, passage in enumerate(passages):
        if row % _SMALL_STRIDE == 0 and len(small) < _MAX_SMALL:
            small.append(len(drawn))
        elif generator.random() >= share:
            continue
        drawn.append(passage)
    return drawn, small


def _questions_with_changed_premises(
    gold: Sequence[Question], about: Sequence[Question], count: int
) -> list[Question]:
    """Returns at most `count` questions of each kind with a changed premise, without an answer."""
    generator = random.Random(0)
    changed = []
    for source, questions in ((CHANGED, gold), (CHANGED_IN_DOCUMENTS, about)):
        changer = PremiseChanger(generator)
        usable = [q for q in questions if q.source in CHANGED_SOURCES and q.answers and q.gold]
        changer.learn_names(q.gold.title for q in usable if q.gold)
        changer.learn_names(q.text for q in usable)
        changer.learn_terms(q.text for q in usable)
        found = 0
        for question in generator.sample(usable, len(usable)) * 2:
            text = changer.change(question) if found < count else None
            if text is not None:
                found += 1
                changed.append(Question(text=text, answers=(), source=source, gold=question.gold))
    return changed


class _UnseenFilter:
    """Removes questions that were seen before. Ignores case and punctuation."""

    def __init__(self, seen: Iterable[Question]) -> None:
        self._seen = {normalise(question.text) for question in seen}

    def filter(self, questions: Iterable[Question]) -> list[Question]:
        """Returns the new questions, which then count as seen."""
        kept = []
        for question in questions:
            text = normalise(question.text)
            if text not in self._seen:
                self._seen.add(text)
                kept.append(question)
        return kept


def _draw_pairs(pairs: Sequence[Question]) -> list[Question]:
    """Returns the first questions of each source, as many as `MAX_PAIRS` allows."""
    counts: dict[str, int] = {}
    drawn = []
    for question in pairs:
        counts[question.source] = counts.get(question.source, 0) + 1
        if counts[question.source] <= MAX_PAIRS.get(question.source, 0):
            drawn.append(question)
    return drawn


def _make_clozes(
    wikipedia: Sequence[Passage], development: dict[str, list[Question]], count: int
) -> list[tuple[int, Question]]:
    """Returns at most `count` cloze questions, each with the row of its passage in `wikipedia`.

    Leaves out articles of development sets, and held-out articles.
    """
    titles = {q.gold.title.casefold() for each in development.values() for q in each if q.gold}
    generator = random.Random(0)
    made: list[tuple[int, Question]] = []
    for row in generator.sample(range(len(wikipedia)), len(wikipedia)):
        passage = wikipedia[row]
        if len(made) == count:
            break
        if passage.title.casefold() in titles or is_held_out(passage):
            continue
        cloze = make_cloze(passage, generator)
        if cloze is not None:
            question = Question(text=cloze.question, answers=(cloze.answer,), source=CLOZE)
            made.append((row, question))
    return made


def _pack_passages(
    passages: Sequence[Passage],
    tokenizer: Tokenizer,
    held_out: Sequence[bool],
    **searched: np.ndarray,
) -> PackedPassages:
    tokens: list[np.ndarray] = []
    lengths = np.zeros(len(passages) + 1, np.int64)
    titles = np.zeros(len(passages), np.uint8)
    for first in track(range(0, len(passages), _BATCH), "pack", len(passages) // _BATCH + 1):
        batch = passages[first : first + _BATCH]
        heads = tokenizer.encode_batch_fast([p.title for p in batch], add_special_tokens=False)
        texts = tokenizer.encode_batch_fast([p.text for p in batch], add_special_tokens=False)
        flat: list[int] = []
        for number, (head, text) in enumerate(zip(heads, texts, strict=True), first):
            title = head.ids[:MAX_TITLE_TOKENS]
            flat += title
            flat += text.ids
            titles[number], lengths[number + 1] = len(title), len(title) + len(text.ids)
        tokens.append(np.array(flat, np.uint16))
    vocabulary = tokenizer.get_vocab()
    continues = np.zeros(max(vocabulary.values()) + 1, np.bool_)
    minor = np.zeros_like(continues)
    for word, token in vocabulary.items():
        continues[token] = word.startswith("##")
        minor[token] = word in _ARTICLES or all(each in string.punctuation for each in word)
    return PackedPassages(
        tokens=np.concatenate(tokens),
        starts=lengths.cumsum(),
        title_lengths=titles,
        held_out=np.array(held_out),
        continues=continues,
        minor=minor,
        special=np.array([vocabulary["[CLS]"], vocabulary["[SEP]"]], np.int32),
        **searched,
    )


def _pack_questions(
    questions: Sequence[Question], rows: dict[Passage, int], tokenizer: Tokenizer
) -> PackedQuestions:
    encoded = [
        each.ids[:MAX_QUESTION_TOKENS]
        for each in tokenizer.encode_batch_fast(
            [question.text for question in questions], add_special_tokens=False
        )
    ]
    answers = np.zeros((len(questions), MAX_ANSWERS, MAX_ANSWER_TOKENS), np.uint16)
    for number, question in enumerate(questions):
        for place, ids in enumerate(_answer_ids(question, tokenizer)):
            answers[number, place, : len(ids)] = ids
    names = sorted({question.source for question in questions})
    return PackedQuestions(
        tokens=np.array([token for ids in encoded for token in ids], np.uint16),
        starts=np.cumsum([0, *map(len, encoded)], dtype=np.int64),
        gold=np.array(
            [rows.get(q.gold, UNKNOWN) if q.gold else UNKNOWN for q in questions], np.int32
        ),
        spans=np.array([_answer_span(question, tokenizer) for question in questions], np.int32),
        answers=answers,
        sources=np.array([names.index(question.source) for question in questions], np.uint8),
        names=np.array(names),
    )


def _answer_ids(question: Question, tokenizer: Tokenizer) -> list[list[int]]:
    """Returns the token ids of the first distinct answers that are short enough."""
    texts = list(dict.fromkeys(question.answers))[: 2 * MAX_ANSWERS]
    encoded = tokenizer.encode_batch_fast(texts, add_special_tokens=False)
    distinct = dict.fromkeys(tuple(each.ids) for each in encoded)
    fitting = [list(ids) for ids in distinct if 0 < len(ids) <= MAX_ANSWER_TOKENS]
    return fitting[:MAX_ANSWERS]


def _answer_span(question: Question, tokenizer: Tokenizer) -> tuple[int, int]:
    if not question.answers:
        return NO_ANSWER, NO_ANSWER
    if question.source == CLOZES:  # a reader confirms these first
        return UNKNOWN, UNKNOWN
    if question.gold is None or question.answer_start is None:
        return UNKNOWN, UNKNOWN
    offsets = tokenizer.encode(question.gold.text, add_special_tokens=False).offsets
    span = token_span(offsets, question.answer_start, len(question.answers[0]))
    return span or (UNKNOWN, UNKNOWN)
