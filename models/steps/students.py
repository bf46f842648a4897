"""Smaller networks, taught by the trained ones.

A student starts as some of its teacher's layers with all of its embeddings and heads. Readers learn
from the teacher and from the answers (`distilling_task`), question encoders from the teacher's
vectors (`question_task`), so that the index stays what it is.
"""

import copy
import random
from pathlib import Path
from typing import TypeVar

from models.data import DataDirectory, DataError
from models.mining.mine import unseen
from models.network.architecture import Encoder, Reader, freeze_embeddings, load_body, shorten
from models.network.weights import open_tokenizer
from models.steps.graphs import export_both
from models.steps.mining import load_learnt
from models.steps.training import teacher_of, trained_encoder
from models.training import checkpoint
from models.training.examples import Encoded
from models.training.loop import Schedule
from models.training.question_task import QuestionPlan, QuestionTask
from models.training.reading_task import ReadingPlan, ReadingTask
from models.training.run import train
from models.training.taught_task import DistillingPlan, DistillingTask
from models.workspace import Workspace
from winnow.bundle import Bundle

Network = TypeVar("Network", Encoder, Reader)


def train_small_reader(
    weights: Path,
    work: Workspace,
    bundle: Bundle,
    plan: tuple[ReadingPlan, DistillingPlan],
    schedule: Schedule,
    every: int,
) -> None:
    """Trains a student of the reader, from its checkpoint if there is one. Its teacher is the
    trained reader, or that of the bundle where none was trained.
    """
    reading, distilling = plan
    teacher = teacher_of(weights, work, bundle)
    passages, learnt = load_learnt(work)
    encoded = Encoded(open_tokenizer(weights), passages, learnt)
    own = ReadingTask(_student(teacher, distilling.layers), encoded, reading, schedule.seed)
    task = DistillingTask(own, teacher, distilling)
    train(task, schedule, work.run("reader", distilling.layers), every)


def train_small_encoder(
    weights: Path,
    work: Workspace,
    data: DataDirectory,
    plan: QuestionPlan,
    schedule: Schedule,
    every: int,
) -> None:
    """Trains a student of the encoder on questions and titles, from its checkpoint if there is
    one.

    Raises:
        DataError: no encoder was trained.

    """
    if checkpoint.finished(work.run("encoder")) is None:
        raise DataError(
            f"{work.run('encoder')} is missing or not finished: run `winnow models train-encoder` "
            "first"
        )
    teacher = trained_encoder(weights, work)
    student = _student(teacher, plan.layers)
    tokenizer = open_tokenizer(weights)
    task = QuestionTask(
        student=student,
        teacher=teacher,
        tokenizer=tokenizer,
        texts=_texts(data),
        plan=plan,
        seed=schedule.seed,
    )
    train(task, schedule, work.run("encoder", plan.layers), every)


def trained_small_reader(weights: Path, work: Workspace, layers: int) -> Reader:
    """Returns a trained student of the reader.

    Raises:
        DataError: it is not trained.

    """
    return _trained(Reader(load_body(weights)), work, "reader", layers)


def export_small_reader(weights: Path, work: Workspace, layers: int) -> None:
    """Exports a trained student in float32 and int8."""
    student = trained_small_reader(weights, work, layers)
    export_both(student, weights, work, "reader", layers)


def export_small_encoder(weights: Path, work: Workspace, layers: int) -> None:
    """Exports a trained student in float32 and int8."""
    student = _trained(Encoder(load_body(weights)), work, "encoder", layers)
    export_both(student, weights, work, "encoder", layers)


def _student(teacher: Network, layers: int) -> Network:
    student = copy.deepcopy(teacher)
    shorten(student.body, layers)
    freeze_embeddings(student.body)
    return student


def _trained(network: Network, work: Workspace, name: str, layers: int) -> Network:
    shorten(network.body, layers)
    network.load_state_dict(_learnt(work, name, layers))
    return network.eval()


def _texts(data: DataDirectory) -> list[str]:
    """Returns training questions and titles, each once, in random order."""
    asked = unseen([*data.gold(), *data.pairs()], data.all_development())
    titles = {passage.title for passage in data.wikipedia()}
    texts = sorted({*(question.text for question in asked), *titles} - {""})
    random.Random(0).shuffle(texts)
    return texts


def _learnt(work: Workspace, name: str, layers: int) -> dict[str, object]:
    state = checkpoint.finished(work.run(name, layers))
    if state is None:
        raise DataError(
            f"{work.run(name, layers)} is missing or not finished: "
            f"run `winnow models train-{name} --layers {layers}` first"
        )
    network: dict[str, object] = state["network"]
    return network
