"""The reader learns to rank: trained further on what the served retriever finds."""

import json
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path

import torch

from models.data import DataDirectory, Question
from models.measuring.reading import OfflineReader
from models.mining.embedding import Embedder
from models.mining.mine import save, unseen
from models.mining.ranking import RetrievedQuestion, training_questions, with_positives
from models.mining.retrievers import FoundPassage, ServedRetriever, found_before
from models.network.architecture import freeze_embeddings
from models.network.weights import open_tokenizer
from models.progress import followed
from models.steps.mining import load_to_learn
from models.steps.training import mean_reader, of_bundle
from models.training.examples import Encoded
from models.training.loop import Schedule
from models.training.reading_task import ReadingPlan, ReadingTask
from models.training.run import train
from models.workspace import Workspace
from winnow.bundle import Bundle
from winnow.settings.common import cores

RANKED = {
    "squad": 1.0,
    "squad-tokenised": 1.0,
    "squadshifts-amazon_reviews": 0.25,
    "squadshifts-reddit": 0.25,
    "dpr-nq.dev": 2.0,
    "dpr-trivia.dev": 1.0,
    "webquestions-train": 1.5,
}
"""Passes over the questions of each source."""
FOUND = 24
"""Passages found for a question."""
_SPARE = 6
"""Found beyond them, since paragraphs of development sets are left out."""


def mine_ranking(data: DataDirectory, index: Path, bundle: Bundle, work: Workspace) -> int:
    """Makes training questions of what a bundle's retriever finds in an index; returns how many.

    Takes some twenty minutes; interrupted, it goes on where it was.
    """
    measured_on = data.all_development()
    questions = [*unseen(data.gold(), measured_on), *unseen(data.pairs(), measured_on)]
    hidden = {question.gold.text for question in measured_on if question.gold is not None}
    top = ServedRetriever(index, bundle)
    asked = _asked(questions, top, bundle, hidden, work.made().found)
    reader = OfflineReader(
        graph=bundle.reader, tokenizer=bundle.tokenizer, manifest=bundle.manifest
    )
    passages, made = training_questions(asked, with_positives(asked, reader))
    save(work.ranked, passages, made)
    return len(made)


def train_ranking(
    weights: Path,
    work: Workspace,
    bundle: Bundle,
    plan: ReadingPlan,
    schedule: Schedule,
    every: int,
) -> None:
    """Trains the reader further, from its checkpoint if there is one.

    It begins with the mean of the reader's runs, or with the bundle's reader where there are none.
    """
    torch.manual_seed(schedule.seed)
    reader = (
        mean_reader(weights, work) if work.run("reader").is_file() else of_bundle(weights, bundle)
    )
    freeze_embeddings(reader.body)
    passages, learnt = load_to_learn(work.ranked, work, plan.passes)
    encoded = Encoded(open_tokenizer(weights), passages, learnt)
    train(ReadingTask(reader, encoded, plan, schedule.seed), schedule, work.run("ranking"), every)


def _asked(
    questions: Sequence[Question],
    top: ServedRetriever,
    bundle: Bundle,
    hidden: set[str],
    kept: Path,
) -> list[RetrievedQuestion]:
    """Returns the passages that are found for every question; a file keeps them, line by line."""
    known = dict(found_before(kept))
    left = [question for question in questions if question.text not in known]
    vectors = Embedder(bundle.question_encoder, bundle.tokenizer).questions([q.text for q in left])

    def find(number: int) -> tuple[str, list[FoundPassage]]:
        text = left[number].text
        found = top.find(text, vectors[number], FOUND + _SPARE)
        return text, [each for each in found if each.passage.text not in hidden][:FOUND]

    with kept.open("a", encoding="utf-8") as file, ThreadPoolExecutor(cores()) as pool:
        for text, found in followed(pool.map(find, range(len(left))), "retrieve", len(left)):
            row = {"question": text, "found": [asdict(each) for each in found]}
            file.write(json.dumps(row, ensure_ascii=False) + "\n")
            known[text] = found
    return [RetrievedQuestion(question, tuple(known[question.text])) for question in questions]
