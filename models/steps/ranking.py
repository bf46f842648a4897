"""Trains the reader to rank the passages that the served retriever returns."""

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch

from models.data import DataDirectory, Question
from models.measuring.reading import OfflineReader
from models.mining.embedding import Embedder
from models.mining.held_out import exclude_questions
from models.mining.mine import save_mined
from models.mining.ranking import RetrievedQuestion, add_gold_passages, training_questions
from models.mining.retrieved_file import (
    open_retrieved,
    read_retrieved,
    retrieval_origin,
    retrieved_row,
)
from models.mining.retrievers import ScoredPassage, ServedRetriever
from models.network.architecture import freeze_embeddings
from models.network.weights import open_tokenizer
from models.progress import track
from models.steps.mining import load_training
from models.steps.training import mean_reader, restore_reader
from models.training.examples import TokenisedQuestions
from models.training.loop import Schedule
from models.training.reading_task import ReadingPlan, ReadingTask
from models.training.run import run_training
from models.workspace import Workspace
from winnow.bundle import Bundle
from winnow.settings.common import cores

RANKING_PASSES = {
    "squad": 1.0,
    "squad-tokenised": 1.0,
    "squadshifts-amazon_reviews": 0.25,
    "squadshifts-reddit": 0.25,
    "dpr-nq.dev": 2.0,
    "dpr-trivia.dev": 1.0,
    "webquestions-train": 1.5,
}
"""Passes over the questions of each source."""
_RETRIEVED = 24
"""Number of passages to keep for each question."""
_SPARE = 6
"""Number of additional passages to retrieve, because paragraphs of development sets are dropped."""


def mine_ranking(data: DataDirectory, index: Path, bundle: Bundle, workspace: Workspace) -> int:
    """Makes training questions with negatives of a bundle's retriever.

    Returns the number of questions. Takes about twenty minutes. After an interruption, the next
    call resumes.

    Raises:
        DataError: the workspace has passages of another index, of another bundle, or of other data.

    """
    development = data.all_development()
    questions = [
        *exclude_questions(data.gold(), development),
        *exclude_questions(data.pairs(), development),
    ]
    excluded = {question.gold.text for question in development if question.gold is not None}
    retriever = ServedRetriever([index], bundle)
    cache = workspace.create().retrieved_passages
    retrieved = retrieve_for_training(questions, retriever, bundle, excluded, cache)
    reader = OfflineReader(
        graph=bundle.reader, tokenizer=bundle.tokenizer, manifest=bundle.manifest
    )
    answered = add_gold_passages(retrieved, reader)
    passages, made = training_questions(retrieved, answered)
    save_mined(workspace.questions_with_negatives, passages, made)
    return len(made)


def train_ranking(
    weights: Path,
    workspace: Workspace,
    bundle: Bundle,
    plan: ReadingPlan,
    schedule: Schedule,
    checkpoint_every: int,
) -> None:
    """Trains the reader, resuming from a checkpoint of this training if there is one.

    Without a checkpoint, training starts from the mean of the reader's runs, or from the bundle's
    reader if there are no runs.
    """
    torch.manual_seed(schedule.seed)
    reader = (
        mean_reader(weights, workspace)
        if workspace.run_checkpoint_path("reader").is_file()
        else restore_reader(weights, bundle)
    )
    freeze_embeddings(reader.body)
    passages, questions = load_training(workspace.questions_with_negatives, workspace, plan.passes)
    tokenised = TokenisedQuestions(open_tokenizer(weights), passages, questions)
    task = ReadingTask(reader, tokenised, plan, schedule.seed)
    run_training(task, schedule, workspace.run_checkpoint_path("ranking"), checkpoint_every)


def retrieve_for_training(
    questions: Sequence[Question],
    retriever: ServedRetriever,
    bundle: Bundle,
    excluded: set[str],
    cache: Path,
) -> list[RetrievedQuestion]:
    """Retrieves passages for every question, except the questions that the file `cache` has.

    Appends a line to `cache` for each question.

    Raises:
        DataError: the file is damaged, or its passages were retrieved with another index, another
            bundle or other excluded passages.

    """
    origin = retrieval_origin(bundle, retriever.fingerprint, excluded)
    by_question = read_retrieved(cache, origin)
    texts = [question.text for question in questions if question.text not in by_question]
    if texts:
        vectors = Embedder.of(bundle).questions(texts)

        def find(index: int) -> tuple[str, list[ScoredPassage]]:
            passages = retriever.find(texts[index], vectors[index], _RETRIEVED + _SPARE)
            allowed = [each for each in passages if each.passage.text not in excluded]
            return texts[index], allowed[:_RETRIEVED]

        with open_retrieved(cache, origin) as file, ThreadPoolExecutor(cores()) as pool:
            for text, passages in track(pool.map(find, range(len(texts))), "retrieve", len(texts)):
                file.write(retrieved_row(text, passages))
                by_question[text] = passages
    return [RetrievedQuestion(each, tuple(by_question[each.text])) for each in questions]
