"""A reader whose lower layers look at question and passage apart, taught by one that never does."""

import copy
from pathlib import Path

import torch

from models.network.apart import ApartReader
from models.network.architecture import Reader, freeze_embeddings, load_body
from models.network.restoring import restored
from models.network.weights import open_tokenizer
from models.steps.ranking import load_ranked
from models.steps.reader import trained_reader
from models.steps.training import train
from models.training.apart_task import ApartPlan, ApartTask
from models.training.examples import Encoded
from models.training.loop import Schedule
from models.training.reading_task import ReadingPlan, ReadingTask
from models.workspace import Workspace
from winnow.bundle import Bundle


def train_apart(
    weights: Path,
    work: Workspace,
    bundle: Bundle,
    plan: tuple[ReadingPlan, ApartPlan],
    schedule: Schedule,
    every: int,
) -> None:
    """Trains it, from its checkpoint if there is one. Its teacher is the trained reader, or that of
    the bundle where none was trained.
    """
    torch.manual_seed(schedule.seed)
    reading, apart = plan
    teacher = teacher_of(weights, work, bundle)
    student = copy.deepcopy(teacher)
    freeze_embeddings(student.body)
    passages, learnt = load_ranked(work)
    encoded = Encoded(open_tokenizer(weights), passages, learnt)
    own = ReadingTask(ApartReader(student, apart.apart), encoded, reading, schedule.seed)
    run = work.apart_run(apart.apart)
    train(ApartTask(own, teacher, apart), schedule, run, every)


def teacher_of(weights: Path, work: Workspace, bundle: Bundle) -> Reader:
    """The reader that was trained, or else the bundle's."""
    if work.run("ranking").is_file() or work.run("reader").is_file():
        return trained_reader(weights, work)
    reader = Reader(load_body(weights))
    reader.load_state_dict(restored(bundle.reader))
    return reader.eval()
