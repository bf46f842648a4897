"""Trains a split reader with a full cross-encoder as its teacher, and exports it."""

import copy
from collections.abc import Iterable, Mapping
from pathlib import Path

import torch
from torch import Tensor

from models.data import DataError
from models.mining.mine import load_mined
from models.network.architecture import Reader, freeze_embeddings, load_body, mean_weights
from models.network.export import quantise_embeddings, quantise_graph
from models.network.neurons import FLOAT_PART, Inputs, prune_neurons, split_outliers
from models.network.restoring import load_weights, restore_split_weights
from models.network.split_reader import SplitReader, export_split
from models.network.weights import open_tokenizer
from models.steps.graphs import HEAD_NODES, probe_inputs
from models.steps.mining import load_training, student_questions
from models.steps.training import teacher_of
from models.training import checkpoint
from models.training.examples import TokenisedQuestions
from models.training.loop import Schedule
from models.training.reading_task import ReadingPlan, ReadingTask
from models.training.run import run_training
from models.training.taught_task import SplitReaderPlan, SplitTask
from models.workspace import Workspace
from winnow.bundle import Bundle, load_bundle


def train_split_reader(
    weights: Path,
    workspace: Workspace,
    bundle: Bundle,
    plans: tuple[ReadingPlan, SplitReaderPlan],
    schedule: Schedule,
    checkpoint_every: int,
) -> None:
    """Trains a split reader, resuming from its checkpoint if there is one.

    The teacher is the trained reader, or the bundle's reader if none was trained. Without a
    checkpoint, training starts from the weights that the plan names, or from the teacher's weights.

    Raises:
        DataError: the initial run is missing or not finished, or its weights have another shape.

    """
    torch.manual_seed(schedule.seed)
    reading_plan, plan = plans
    teacher = teacher_of(weights, workspace, bundle)
    passages, questions = load_training(
        student_questions(workspace), workspace, reading_plan.passes
    )
    student = SplitReader(copy.deepcopy(teacher), plan.apart)
    if plan.begun:
        _load_weights(student, Path(plan.begun))
    if plan.neurons:
        upper = range(plan.apart, len(student.body.encoder.layer))
        inputs = probe_inputs(weights, passages, questions)
        prune_neurons(student.body, upper, plan.neurons, inputs, student)
    initial = _read_weights(Path(plan.begun), plan.apart) if plan.averaged else {}
    _require_shapes(initial, student)
    freeze_embeddings(student.body)
    tokenised = TokenisedQuestions(open_tokenizer(weights), passages, questions)
    reading = ReadingTask(student, tokenised, reading_plan, schedule.seed)
    run = workspace.split_run_checkpoint_path(plan.apart)
    run_training(SplitTask(reading, teacher, plan), schedule, run, checkpoint_every)
    if initial:
        _save_mean(run, initial)


def export_split_reader(weights: Path, workspace: Workspace, layers: int) -> None:
    """Exports the lower and the upper layers of a trained split reader, in float32 and int8.

    Raises:
        DataError: the reader is not trained.

    """
    network = trained_split_reader(weights, workspace, layers)
    export_split(
        network,
        workspace.split_graph("lower", "fp32", layers),
        workspace.split_graph("upper", "fp32", layers),
    )
    quantise_split_reader(
        network,
        probe_inputs(weights, *load_mined(student_questions(workspace))),
        workspace.split_graph("lower", "int8", layers),
        workspace.split_graph("upper", "int8", layers),
    )


def trained_split_reader(weights: Path, workspace: Workspace, layers: int) -> SplitReader:
    """Returns the trained split reader.

    Raises:
        DataError: the reader is not trained.

    """
    network = SplitReader(Reader(load_body(weights)), layers)
    _load_weights(network, workspace.split_run_checkpoint_path(layers))
    return network.eval()


def quantise_split_reader(
    network: SplitReader, inputs: Iterable[Inputs], lower: Path, upper: Path
) -> None:
    """Writes the graphs `lower` and `upper` in int8, with outlier channels and heads in float.

    Changes `network` in place.
    """
    quantise_embeddings(network.body)
    split_outliers(network.body, inputs, network=network)
    plain = lower.with_suffix(".float.onnx"), upper.with_suffix(".float.onnx")
    export_split(network, *plain)
    for source, target in zip(plain, (lower, upper), strict=True):
        quantise_graph(source, target, (*HEAD_NODES, FLOAT_PART))
        source.unlink()


def _load_weights(network: SplitReader, source: Path) -> None:
    """Loads the weights of a checkpoint or a bundle into a network."""
    load_weights(network, network.body, _read_weights(source, network.split_layers), source)


def _read_weights(source: Path, layers: int) -> dict[str, Tensor]:
    """Reads the weights of a checkpoint or a bundle."""
    return bundle_weights(source, layers) if source.is_dir() else _weights_of_run(source)


def _save_mean(run: Path, initial: dict[str, Tensor]) -> None:
    """Adds the mean of the trained and the initial weights to a finished checkpoint.

    Does nothing if the checkpoint already has a mean.
    """
    state = checkpoint.load_finished(run)
    if state is not None and checkpoint.MEAN not in state:
        checkpoint.save(run, {**state, checkpoint.MEAN: mean_weights([state["network"], initial])})


def _weights_of_run(run: Path) -> dict[str, Tensor]:
    """Returns the trained weights, or the averaged weights if the plan averages."""
    state = checkpoint.load_finished(run)
    if state is None:
        raise DataError(f"{run} is missing or not finished: run `winnow models train-apart` first")
    averaged = state["plan"].get(SplitTask.plan_key, {}).get("averaged")
    if averaged and checkpoint.MEAN not in state:
        raise DataError(f"{run} has no averaged weights yet: repeat the command that trained it")
    network: dict[str, Tensor] = state[checkpoint.MEAN if averaged else "network"]
    return network


def _require_shapes(initial: dict[str, Tensor], student: SplitReader) -> None:
    shapes = {name: weight.shape for name, weight in student.state_dict().items()}
    if any(shapes.get(name) != weight.shape for name, weight in initial.items()):
        neurons, begun = _min_neurons(student.state_dict()), _min_neurons(initial)
        raise DataError(
            f"--average needs equal shapes, but this run has {neurons} neurons in its smallest "
            f"layer, and the run of --begin-with has {begun}: set --neurons {begun}, or leave out "
            "--average"
        )


def _min_neurons(weights: Mapping[str, Tensor]) -> int:
    """Returns the number of neurons in the smallest feed-forward layer."""
    return min(len(w) for name, w in weights.items() if name.endswith("intermediate.dense.bias"))


def bundle_weights(directory: Path, layers: int) -> dict[str, Tensor]:
    """Restores the weights of a bundle's split reader from its int8 graphs.

    Raises:
        DataError: the bundle has no split reader, or one with another number of split layers.

    """
    bundle = load_bundle(directory)
    split_entry = bundle.manifest.reader.apart
    if split_entry is None:
        raise DataError(
            f"the reader of {directory} is a full cross-encoder: name a bundle with a split reader"
        )
    return restore_split_weights(directory / split_entry.lower, bundle.reader, layers)
