"""The reader: trained several times, and the mean of these runs."""

from pathlib import Path

import torch

from models.data.rows import DataError
from models.network.architecture import Reader, freeze_embeddings, load_body
from models.network.averaging import mean
from models.network.restoring import restored, take_over
from models.network.weights import open_tokenizer
from models.steps.mining import load_learnt
from models.steps.training import train
from models.training import checkpoint
from models.training.examples import Encoded
from models.training.loop import Schedule
from models.training.reading_task import ReadingPlan, ReadingTask
from models.workspace import Workspace
from winnow.bundle import Bundle

READ = {
    "squad": 2.0,
    "squad-tokenised": 1.6,
    "squadshifts-amazon_reviews": 0.5,
    "squadshifts-reddit": 0.5,
    "dpr-nq.dev": 2.0,
    "dpr-trivia.dev": 0.8,
    "webquestions-train": 1.6,
}
"""How often the reader sees the questions of each source."""
MEMBERS = 3
"""Runs of the reader, each with a seed of its own, whose weights are averaged: better than each."""


def train_reader(
    weights: Path, work: Workspace, plan: ReadingPlan, schedule: Schedule, every: int, run: Path
) -> None:
    """Trains a reader, from its checkpoint `run` if there is one."""
    torch.manual_seed(schedule.seed)
    passages, learnt = load_learnt(work)
    reader = Reader(load_body(weights))
    freeze_embeddings(reader.body)
    encoded = Encoded(open_tokenizer(weights), passages, learnt)
    train(ReadingTask(reader, encoded, plan, schedule.seed), schedule, run, every)


def trained_reader(weights: Path, work: Workspace) -> Reader:
    """The reader as it learnt to rank; before that, the mean of its runs.

    Raises:
        DataError: there is no run, or one is not finished.

    """
    ranking = checkpoint.finished(work.run("ranking"))
    if ranking is None:
        return mean_reader(weights, work)
    reader = Reader(load_body(weights))
    reader.load_state_dict(ranking["network"])
    return reader.eval()


def teacher_of(weights: Path, work: Workspace, bundle: Bundle) -> Reader:
    """The reader that was trained, or else the bundle's.

    Raises:
        DataError: neither is a reader that was trained here.

    """
    if work.run("ranking").is_file() or work.run("reader").is_file():
        return trained_reader(weights, work)
    return of_bundle(weights, bundle)


def of_bundle(weights: Path, bundle: Bundle) -> Reader:
    """The reader of a bundle, as its int8 graph has it.

    Raises:
        DataError: it is no reader that was trained here.

    """
    reader = Reader(load_body(weights))
    take_over(reader, reader.body, restored(bundle.reader), bundle.reader)
    return reader.eval()


def mean_reader(weights: Path, work: Workspace) -> Reader:
    """The reader whose weights are the mean of its runs' (Wortsman et al. 2022, "Model soups").

    Raises:
        DataError: there is no run, or one is not finished.

    """
    runs = [path for path in work.reader_runs(MEMBERS) if path.is_file()]
    states = [checkpoint.finished(path) for path in runs]
    unfinished = [str(path) for path, state in zip(runs, states, strict=True) if state is None]
    if unfinished or not runs:
        raise DataError(
            f"{', '.join(unfinished) or work.run('reader')}: there is no finished reader: "
            "run `winnow models train-reader` first"
        )
    reader = Reader(load_body(weights))
    reader.load_state_dict(mean([state["network"] for state in states if state is not None]))
    return reader.eval()
