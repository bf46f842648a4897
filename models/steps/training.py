"""The encoder and the reader: how they are trained, and the networks of their finished runs."""

from pathlib import Path

import torch

from models.data import DataError
from models.network.architecture import (
    Encoder,
    Reader,
    freeze_embeddings,
    load_body,
    mean_weights,
    mixed_weights,
)
from models.network.restoring import restored, take_over
from models.network.weights import open_tokenizer
from models.steps.mining import load_learnt
from models.training import checkpoint
from models.training.encoding_task import EncodingPlan, EncodingTask
from models.training.examples import Encoded
from models.training.loop import Schedule
from models.training.reading_task import ReadingPlan, ReadingTask
from models.training.run import train
from models.workspace import Workspace
from winnow.bundle import Bundle

ENCODED = {
    "squad": 3.0,
    "squad-tokenised": 2.0,
    "squadshifts-amazon_reviews": 0.3,
    "squadshifts-reddit": 0.3,
    "dpr-nq.dev": 2.0,
    "dpr-trivia.dev": 1.0,
    "webquestions-train": 2.0,
}
"""Passes of the encoder over the passages of each source."""
TRAINED_SHARE = 0.7
"""Share of the trained encoder's weights: the pretrained ones know more than the training set has
(Wortsman et al. 2022, "Robust fine-tuning of zero-shot models").
"""


def train_encoder(
    weights: Path, work: Workspace, plan: EncodingPlan, schedule: Schedule, every: int
) -> None:
    """Trains the encoder, from its checkpoint if there is one."""
    passages, learnt = load_learnt(work)
    encoder = Encoder(load_body(weights))
    freeze_embeddings(encoder.body)
    task = EncodingTask(
        encoder=encoder,
        tokenizer=open_tokenizer(weights),
        passages=passages,
        asked=learnt,
        plan=plan,
        seed=schedule.seed,
    )
    train(task, schedule, work.run("encoder"), every)


def trained_encoder(weights: Path, work: Workspace) -> Encoder:
    """Returns the encoder as its finished run left it, mixed with what it was before any training.

    Without a finished run it is the pretrained one.
    """
    encoder = Encoder(load_body(weights))
    state = checkpoint.finished(work.run("encoder"))
    if state is not None:
        encoder.load_state_dict(
            mixed_weights(encoder.state_dict(), state["network"], TRAINED_SHARE)
        )
    return encoder.eval()


READ = {
    "squad": 2.0,
    "squad-tokenised": 1.6,
    "squadshifts-amazon_reviews": 0.5,
    "squadshifts-reddit": 0.5,
    "dpr-nq.dev": 2.0,
    "dpr-trivia.dev": 0.8,
    "webquestions-train": 1.6,
}
"""Passes of the reader over the questions of each source."""
MEMBERS = 3
"""Runs of the reader with different seeds. Their mean is better than each of them."""


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
    """Returns the reader as it learnt to rank; before that, the mean of its runs.

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
    """Returns the reader that was trained, or else the bundle's.

    Raises:
        DataError: neither is a reader that was trained here.

    """
    if work.run("ranking").is_file() or work.run("reader").is_file():
        return trained_reader(weights, work)
    return of_bundle(weights, bundle)


def of_bundle(weights: Path, bundle: Bundle) -> Reader:
    """Returns the reader of a bundle, as its int8 graph has it.

    Raises:
        DataError: it is no reader that was trained here.

    """
    reader = Reader(load_body(weights))
    take_over(reader, reader.body, restored(bundle.reader), bundle.reader)
    return reader.eval()


def mean_reader(weights: Path, work: Workspace) -> Reader:
    """Returns the mean of the reader's runs (Wortsman et al. 2022, "Model soups").

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
    reader.load_state_dict(
        mean_weights([state["network"] for state in states if state is not None])
    )
    return reader.eval()
