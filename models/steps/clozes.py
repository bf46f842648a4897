"""Making questions that nobody asked."""

import random
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from models.data import DataDirectory, Passage, Question
from models.measuring.reading import OfflineReader
from models.mining.cloze import cloze
from models.mining.mine import is_held_out, save
from models.mining.ranking import RetrievedQuestion, training_questions, with_positives
from models.mining.retrievers import FoundPassage, LexicalIndex
from models.progress import followed
from models.workspace import Workspace
from winnow.bundle import Bundle
from winnow.settings.common import cores

CLOZES = "cloze"
"""The source of these questions."""
_FOUND = 20
"""Passages found by words for a question."""
_JUDGED = 2
"""Other passages that are read for an answer."""
_FAR = 2.0
"""Squared distance of what was found by words alone: only a reader's word counts for it."""


def mine_clozes(
    data: DataDirectory, bundle: Bundle, work: Workspace, passages: int, seed: int = 0
) -> int:
    """Makes training questions of `passages` passages of Wikipedia; returns their number.

    The passage that answers is another one where the bundle's reader finds the answer there, or
    else the question's own; where it does not find it there either, the question is left out. No
    article of a development set is used, and none that is held out is asked about.
    """
    reader = OfflineReader(
        graph=bundle.reader, tokenizer=bundle.tokenizer, manifest=bundle.manifest
    )
    allowed = _allowed(data)
    lexical = LexicalIndex(followed(allowed, "index by words", len(allowed)))
    work.made()
    generator = random.Random(seed)
    asked_about = [passage for passage in allowed if not is_held_out(passage)]
    drawn = generator.sample(asked_about, min(passages, len(asked_about)))
    made = [(passage, cloze(passage, generator)) for passage in drawn]
    own = [
        (p, Question(text=c.question, answers=(c.answer,), source=CLOZES))
        for p, c in made
        if c is not None
    ]

    def ask(pair: tuple[Passage, Question]) -> RetrievedQuestion:
        passage, question = pair
        others = [each for each in lexical.search(question.text, _FOUND) if each != passage]
        return RetrievedQuestion(question, tuple(FoundPassage(each, _FAR, 0.0) for each in others))

    with ThreadPoolExecutor(cores()) as pool:
        asked = list(followed(pool.map(ask, own), "retrieve", len(own)))
    answered = _answered(asked, [passage for passage, _ in own], reader)
    every, questions = training_questions(asked, answered)
    usable = [question for question in questions if question.negatives]
    save(work.clozes, every, usable)
    return len(usable)


def with_clozes(passes: Mapping[str, float], clozes: float) -> dict[str, float]:
    """Returns `passes` with `clozes` passes over the cloze questions added.

    If `clozes` is 0, nothing is added.
    """
    return {**passes, CLOZES: clozes} if clozes else dict(passes)


def _allowed(data: DataDirectory) -> list[Passage]:
    """Wikipedia without the articles of the development sets, however their titles are spelt."""
    golds = [question.gold for question in data.all_development() if question.gold is not None]
    titles = {gold.title.casefold() for gold in golds}
    return [passage for passage in data.wikipedia() if passage.title.casefold() not in titles]


def _answered(
    asked: Sequence[RetrievedQuestion], own: Sequence[Passage], reader: OfflineReader
) -> list[Question | None]:
    elsewhere = with_positives(asked, reader, _JUDGED)
    left = [row for row, question in enumerate(elsewhere) if question is None]
    alone = [
        RetrievedQuestion(asked[row].question, (FoundPassage(own[row], _FAR, 0.0),)) for row in left
    ]
    for row, question in zip(left, with_positives(alone, reader), strict=True):
        elsewhere[row] = question
    return elsewhere
