"""Makes cloze questions from Wikipedia, and keeps the questions that a bundle's reader answers."""

import random
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from models.data import DataDirectory, Passage, Question
from models.measuring.reading import OfflineReader
from models.mining.cloze import make_cloze
from models.mining.held_out import is_held_out
from models.mining.mine import save_mined
from models.mining.ranking import RetrievedQuestion, add_gold_passages, training_questions
from models.mining.retrievers import LexicalIndex, ScoredPassage
from models.progress import track
from models.workspace import Workspace
from winnow.bundle import Bundle
from winnow.settings.common import cores

CLOZES = "cloze"
"""Name of the source of cloze questions."""
_RETRIEVED = 20
"""Number of passages to retrieve by words for each question."""
_READ = 2
"""Number of retrieved passages to read for each question."""
_FAR = 2.0
"""Squared distance given to passages that were retrieved by words.

With this distance, a passage becomes gold only if the reader finds the answer in it.
"""


def mine_clozes(
    data: DataDirectory, bundle: Bundle, workspace: Workspace, passages: int, seed: int = 0
) -> int:
    """Makes cloze questions from `passages` Wikipedia passages, and returns their number.

    If the reader finds the answer in another passage, that passage is gold, else the question's own
    passage. Questions that the reader cannot answer are left out. Articles of development sets
    are not used, and held-out articles yield no questions.
    """
    reader = OfflineReader(
        graph=bundle.reader, tokenizer=bundle.tokenizer, manifest=bundle.manifest
    )
    allowed = _passages_outside_development_sets(data)
    lexical = LexicalIndex(track(allowed, "index by words", len(allowed)))
    workspace.create()
    generator = random.Random(seed)
    sources = [passage for passage in allowed if not is_held_out(passage)]
    drawn = generator.sample(sources, min(passages, len(sources)))
    made = [(passage, make_cloze(passage, generator)) for passage in drawn]
    clozes = [
        (
            passage,
            Question(text=cloze.question, answers=(cloze.answer,), source=CLOZES),
        )
        for passage, cloze in made
        if cloze is not None
    ]

    def retrieve(pair: tuple[Passage, Question]) -> RetrievedQuestion:
        passage, question = pair
        others = [each for each in lexical.search(question.text, _RETRIEVED) if each != passage]
        return RetrievedQuestion(question, tuple(ScoredPassage(each, _FAR, 0.0) for each in others))

    with ThreadPoolExecutor(cores()) as pool:
        retrieved = list(track(pool.map(retrieve, clozes), "retrieve", len(clozes)))
    answered = _answer_clozes(retrieved, [passage for passage, _ in clozes], reader)
    all_passages, questions = training_questions(retrieved, answered)
    usable = [question for question in questions if question.negatives]
    save_mined(workspace.cloze_questions, all_passages, usable)
    return len(usable)


def add_cloze_passes(passes: Mapping[str, float], cloze_passes: float) -> dict[str, float]:
    """Returns `passes` with `cloze_passes` passes over the cloze questions. 0 adds none."""
    return {**passes, CLOZES: cloze_passes} if cloze_passes else dict(passes)


def _passages_outside_development_sets(data: DataDirectory) -> list[Passage]:
    """Returns the Wikipedia passages outside the articles of development sets.

    Articles are compared by title, ignoring case.
    """
    golds = [question.gold for question in data.all_development() if question.gold is not None]
    titles = {gold.title.casefold() for gold in golds}
    return [passage for passage in data.wikipedia() if passage.title.casefold() not in titles]


def _answer_clozes(
    retrieved: Sequence[RetrievedQuestion], own_passages: Sequence[Passage], reader: OfflineReader
) -> list[Question | None]:
    """Returns each question with its gold passage, or None if the reader finds no answer.

    The gold passage is a retrieved one in which the reader finds the answer. Without one, it is the
    passage from which the question was made.
    """
    answered = add_gold_passages(retrieved, reader, _READ)
    remaining = [row for row, question in enumerate(answered) if question is None]
    own = [
        RetrievedQuestion(retrieved[row].question, (ScoredPassage(own_passages[row], _FAR, 0.0),))
        for row in remaining
    ]
    for row, question in zip(remaining, add_gold_passages(own, reader), strict=True):
        answered[row] = question
    return answered
