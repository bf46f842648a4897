"""Trains the encoder and the reader, and loads the networks of finished runs."""

from pathlib import Path

import torch

from models.data import DataError
from models.network.architecture import (
    Encoder,
    Reader,
    freeze_embeddings,
    interpolate_weights,
    load_body,
    mean_weights,
)
from models.network.restoring import load_weights, restore_weights
from models.network.weights import open_tokenizer
from models.steps.mining import load_training
from models.training import checkpoint
from models.training.encoding_task import EncodingPlan, EncodingTask
from models.training.examples import TokenisedQuestions
from models.training.loop import Schedule
from models.training.reading_task import ReadingPlan, ReadingTask
from models.training.run import run_training
from models.workspace import Workspace
from winnow.bundle import Bundle

ENCODER_PASSES = {
    "squad": 3.0,
    "squad-tokenised": 2.0,
    "squadshifts-amazon_reviews": 0.3,
    "squadshifts-reddit": 0.3,
    "dpr-nq.dev": 2.0,
    "dpr-trivia.dev": 1.0,
    "webquestions-train": 2.0,
}
"""Passes of the encoder's training over the passages of each source."""
TRAINED_SHARE = 0.7
"""Weight of the trained encoder in the mean of the trained and the pretrained encoder.

The mean generalises better than the trained encoder (Wortsman et al. 2022, "Robust fine-tuning of
zero-shot models").
"""


def train_encoder(
    weights: Path,
    workspace: Workspace,
    plan: EncodingPlan,
    schedule: Schedule,
    checkpoint_every: int,
) -> None:
    """Trains the encoder, resuming from its checkpoint if there is one."""
    passages, questions = load_training(workspace.mined_questions, workspace, {})
    encoder = Encoder(load_body(weights))
    freeze_embeddings(encoder.body)
    task = EncodingTask(
        encoder=encoder,
        tokenizer=open_tokenizer(weights),
        passages=passages,
        questions=questions,
        plan=plan,
        seed=schedule.seed,
    )
    run_training(task, schedule, workspace.run_checkpoint_path("encoder"), checkpoint_every)


def trained_encoder(weights: Path, workspace: Workspace) -> Encoder:
    """Returns the encoder of the finished run, averaged with other weights.

    If the checkpoint contains a mean, it is returned, else the mean of the trained and the
    pretrained encoder. Without a finished run, returns the pretrained encoder.
    """
    encoder = Encoder(load_body(weights))
    state = checkpoint.load_finished(workspace.run_checkpoint_path("encoder"))
    if state is not None and checkpoint.MEAN in state:
        encoder.load_state_dict(state[checkpoint.MEAN])
    elif state is not None:
        encoder.load_state_dict(
            interpolate_weights(encoder.state_dict(), state["network"], TRAINED_SHARE)
        )
    return encoder.eval()


READER_PASSES = {
    "squad": 2.0,
    "squad-tokenised": 1.6,
    "squadshifts-amazon_reviews": 0.5,
    "squadshifts-reddit": 0.5,
    "dpr-nq.dev": 2.0,
    "dpr-trivia.dev": 0.8,
    "webquestions-train": 1.6,
}
"""Passes of the reader's training over the questions of each source."""
MEMBERS = 3
"""Number of training runs of the reader, with different seeds.

The mean of their weights is more accurate than each run.
"""


def train_reader(
    weights: Path,
    workspace: Workspace,
    plan: ReadingPlan,
    schedule: Schedule,
    checkpoint_every: int,
    run: Path,
) -> None:
    """Trains a reader, resuming from the checkpoint `run` if there is one."""
    torch.manual_seed(schedule.seed)
    passages, questions = load_training(workspace.mined_questions, workspace, {})
    reader = Reader(load_body(weights))
    freeze_embeddings(reader.body)
    tokenised = TokenisedQuestions(open_tokenizer(weights), passages, questions)
    run_training(
        ReadingTask(reader, tokenised, plan, schedule.seed), schedule, run, checkpoint_every
    )


def trained_reader(weights: Path, workspace: Workspace) -> Reader:
    """Returns the reader that was trained to rank, or else the mean of the reader's runs.

    Raises:
        DataError: there is no run of the reader, or one is not finished.

    """
    ranking = checkpoint.load_finished(workspace.run_checkpoint_path("ranking"))
    if ranking is None:
        return mean_reader(weights, workspace)
    reader = Reader(load_body(weights))
    reader.load_state_dict(ranking["network"])
    return reader.eval()


def teacher_of(weights: Path, workspace: Workspace, bundle: Bundle) -> Reader:
    """Returns the trained reader, or else the bundle's reader.

    Raises:
        DataError: the bundle's reader was not made by `winnow models`.

    """
    if (
        workspace.run_checkpoint_path("ranking").is_file()
        or workspace.run_checkpoint_path("reader").is_file()
    ):
        return trained_reader(weights, workspace)
    return restore_reader(weights, bundle)


def restore_reader(weights: Path, bundle: Bundle) -> Reader:
    """Restores the reader of a bundle from its int8 graph.

    Raises:
        DataError: the reader was not made by `winnow models`.

    """
    reader = Reader(load_body(weights))
    load_weights(reader, reader.body, restore_weights(bundle.reader), bundle.reader)
    return reader.eval()


def mean_reader(weights: Path, workspace: Workspace) -> Reader:
    """Returns the mean of the reader's runs (Wortsman et al. 2022, "Model soups").

    Raises:
        DataError: there is no run of the reader, or one is not finished.

    """
    runs = [path for path in workspace.reader_run_paths(MEMBERS) if path.is_file()]
    states = [checkpoint.load_finished(path) for path in runs]
    unfinished = [str(path) for path, state in zip(runs, states, strict=True) if state is None]
    if unfinished or not runs:
        raise DataError(
            f"{', '.join(unfinished) or workspace.run_checkpoint_path('reader')} "
            "is not a finished run: run `winnow models train-reader` first"
        )
    reader = Reader(load_body(weights))
    reader.load_state_dict(
        mean_weights([state["network"] for state in states if state is not None])
    )
    return reader.eval()
