"""Trains smaller networks, the students, with trained networks as teachers.

A student starts with some layers of its teacher, and with all its embeddings and heads. Readers
learn from the teacher and from the answers (`taught_task`). Question encoders learn the teacher's
vectors (`question_task`), so indexes remain valid.
"""

import copy
import random
from pathlib import Path
from typing import Any, TypeVar

from models.data import DataDirectory, DataError
from models.mining.held_out import exclude_questions
from models.network.architecture import Encoder, Reader, freeze_embeddings, load_body, shorten_body
from models.network.weights import open_tokenizer
from models.steps.graphs import export_fp32_and_int8
from models.steps.mining import load_training
from models.steps.training import teacher_of, trained_encoder
from models.training import checkpoint
from models.training.examples import TokenisedQuestions
from models.training.loop import Schedule
from models.training.question_task import QuestionPlan, QuestionTask
from models.training.reading_task import ReadingPlan, ReadingTask
from models.training.run import run_training
from models.training.taught_task import DistillingPlan, DistillingTask
from models.workspace import Workspace
from winnow.bundle import Bundle

Network = TypeVar("Network", Encoder, Reader)


def train_small_reader(
    weights: Path,
    workspace: Workspace,
    bundle: Bundle,
    plans: tuple[ReadingPlan, DistillingPlan],
    schedule: Schedule,
    checkpoint_every: int,
) -> None:
    """Trains a smaller reader, resuming from its checkpoint if there is one.

    The teacher is the trained reader, or the bundle's reader if none was trained.
    """
    reading_plan, distilling_plan = plans
    teacher = teacher_of(weights, workspace, bundle)
    passages, questions = load_training(workspace.mined_questions, workspace, {})
    tokenised = TokenisedQuestions(open_tokenizer(weights), passages, questions)
    student = _shortened_copy(teacher, distilling_plan.layers)
    reading = ReadingTask(student, tokenised, reading_plan, schedule.seed)
    task = DistillingTask(reading, teacher, distilling_plan)
    run_training(
        task,
        schedule,
        workspace.run_checkpoint_path("reader", distilling_plan.layers),
        checkpoint_every,
    )


def train_small_encoder(
    weights: Path,
    workspace: Workspace,
    data: DataDirectory,
    plan: QuestionPlan,
    schedule: Schedule,
    checkpoint_every: int,
) -> None:
    """Trains a smaller question encoder, resuming from its checkpoint if there is one.

    Raises:
        DataError: no encoder was trained.

    """
    _finished_run(workspace, "encoder", None)
    teacher = trained_encoder(weights, workspace)
    task = QuestionTask(
        student=_shortened_copy(teacher, plan.layers),
        teacher=teacher,
        tokenizer=open_tokenizer(weights),
        texts=_questions_and_titles(data),
        plan=plan,
        seed=schedule.seed,
    )
    run_training(
        task, schedule, workspace.run_checkpoint_path("encoder", plan.layers), checkpoint_every
    )


def trained_small_reader(weights: Path, workspace: Workspace, layers: int) -> Reader:
    """Returns the trained smaller reader.

    Raises:
        DataError: the reader is not trained.

    """
    return _load_student(Reader(load_body(weights)), workspace, "reader", layers)


def export_small_reader(weights: Path, workspace: Workspace, layers: int) -> None:
    """Exports a smaller reader in float32 and int8."""
    student = trained_small_reader(weights, workspace, layers)
    export_fp32_and_int8(student, weights, workspace, "reader", layers)


def export_small_encoder(weights: Path, workspace: Workspace, layers: int) -> None:
    """Exports a smaller question encoder in float32 and int8."""
    student = _load_student(Encoder(load_body(weights)), workspace, "encoder", layers)
    export_fp32_and_int8(student, weights, workspace, "encoder", layers)


def _shortened_copy(teacher: Network, layers: int) -> Network:
    student = copy.deepcopy(teacher)
    shorten_body(student.body, layers)
    freeze_embeddings(student.body)
    return student


def _load_student(network: Network, workspace: Workspace, name: str, layers: int) -> Network:
    shorten_body(network.body, layers)
    network.load_state_dict(_finished_run(workspace, name, layers)["network"])
    return network.eval()


def _questions_and_titles(data: DataDirectory) -> list[str]:
    """Returns the distinct training questions and Wikipedia titles, in random order."""
    questions = exclude_questions([*data.gold(), *data.pairs()], data.all_development())
    titles = {passage.title for passage in data.wikipedia()}
    texts = sorted({*(question.text for question in questions), *titles} - {""})
    random.Random(0).shuffle(texts)
    return texts


def _finished_run(workspace: Workspace, name: str, layers: int | None) -> dict[str, Any]:
    """Returns the checkpoint of a finished run, or raises DataError."""
    run = workspace.run_checkpoint_path(name, layers)
    state = checkpoint.load_finished(run)
    if state is None:
        option = "" if layers is None else f" --layers {layers}"
        raise DataError(
            f"{run} is missing or not finished: run `winnow models train-{name}{option}` first"
        )
    return state
