"""Training and export of a split reader, taught by a full cross-encoder."""

import copy
from collections.abc import Iterable
from pathlib import Path

import torch
from torch import Tensor

from models.data import DataError
from models.mining.mine import load
from models.network.architecture import Reader, freeze_embeddings, load_body, mean_weights
from models.network.export import quantise, shrink_embeddings
from models.network.neurons import FLOAT_PART, Inputs, slim, split_outliers
from models.network.restoring import restored_split_reader, take_over
from models.network.split_reader import SplitReader, export_split
from models.network.weights import open_tokenizer
from models.steps.graphs import HEADS, probes
from models.steps.mining import load_to_learn, to_read
from models.steps.training import teacher_of
from models.training import checkpoint
from models.training.examples import Encoded
from models.training.loop import Schedule
from models.training.reading_task import ReadingPlan, ReadingTask
from models.training.run import train
from models.training.taught_task import SplitPlan, SplitTask
from models.workspace import Workspace
from winnow.bundle import Bundle, load_bundle

_MEAN = "mean"
"""Key of the mean of the trained and the initial weights of a finished run."""


def train_split_reader(
    weights: Path,
    work: Workspace,
    bundle: Bundle,
    plan: tuple[ReadingPlan, SplitPlan],
    schedule: Schedule,
    every: int,
) -> None:
    """Trains a split reader, from its checkpoint if there is one.

    Its teacher is the trained reader, or that of the bundle if none was trained. It begins with the
    teacher's weights, or with those of the plan.

    Raises:
        DataError: it is to begin with a run that is missing or not finished, or to be averaged
            with one of another shape.

    """
    torch.manual_seed(schedule.seed)
    reading, apart = plan
    teacher = teacher_of(weights, work, bundle)
    passages, learnt = load_to_learn(to_read(work), work, reading.passes)
    student = SplitReader(copy.deepcopy(teacher), apart.apart)
    if apart.begun:
        _take_over(student, Path(apart.begun))
    if apart.neurons:
        upper = range(apart.apart, len(student.body.encoder.layer))
        slim(student.body, upper, apart.neurons, probes(weights, passages, learnt), student)
    begun = _weights_of(Path(apart.begun), apart.apart) if apart.averaged else {}
    _expect_shapes(begun, student)
    freeze_embeddings(student.body)
    encoded = Encoded(open_tokenizer(weights), passages, learnt)
    own = ReadingTask(student, encoded, reading, schedule.seed)
    run = work.split_run(apart.apart)
    train(SplitTask(own, teacher, apart), schedule, run, every)
    if begun:
        _average(run, begun)


def export_split_reader(weights: Path, work: Workspace, layers: int) -> None:
    """Exports a trained split reader: its two networks, in float32 and in int8.

    Raises:
        DataError: it is not trained.

    """
    network = trained_split_reader(weights, work, layers)
    export_split(
        network,
        work.split_graph("lower", "fp32", layers),
        work.split_graph("upper", "fp32", layers),
    )
    quantise_split_reader(
        network,
        probes(weights, *load(to_read(work))),
        work.split_graph("lower", "int8", layers),
        work.split_graph("upper", "int8", layers),
    )


def trained_split_reader(weights: Path, work: Workspace, layers: int) -> SplitReader:
    """Returns the trained split reader.

    Raises:
        DataError: it is not trained.

    """
    network = SplitReader(Reader(load_body(weights)), layers)
    _take_over(network, work.split_run(layers))
    return network.eval()


def quantise_split_reader(
    network: SplitReader, sequences: Iterable[Inputs], lower: Path, upper: Path
) -> None:
    """Writes both networks in int8, outliers and heads in float; changes `network`."""
    shrink_embeddings(network.body)
    split_outliers(network.body, sequences, network=network)
    plain = lower.with_suffix(".float.onnx"), upper.with_suffix(".float.onnx")
    export_split(network, *plain)
    for source, target in zip(plain, (lower, upper), strict=True):
        quantise(source, target, (*HEADS, FLOAT_PART))
        source.unlink()


def _take_over(network: SplitReader, run: Path) -> None:
    """Loads the weights of a run, or of a bundle, into a network."""
    take_over(network, network.body, _weights_of(run, network.split_layers), run)


def _weights_of(run: Path, layers: int) -> dict[str, Tensor]:
    return _of_bundle(run, layers) if run.is_dir() else _of_run(run)


def _average(run: Path, begun: dict[str, Tensor]) -> None:
    """Adds the mean of the trained and the initial weights to a finished run, once."""
    state = checkpoint.finished(run)
    if state is not None and _MEAN not in state:
        checkpoint.save(run, {**state, _MEAN: mean_weights([state["network"], begun])})


def _of_run(run: Path) -> dict[str, Tensor]:
    """Returns the weights of a run, or their mean with the initial ones if its plan says so."""
    state = checkpoint.finished(run)
    averaged = state is not None and state["plan"].get(SplitTask.told_as, {}).get("averaged")
    if state is None:
        raise DataError(
            f"{run} is missing or not finished: train it by `winnow models train-apart` first"
        )
    if averaged and _MEAN not in state:
        raise DataError(f"{run} has no mean yet: the command that trained it makes it")
    network: dict[str, Tensor] = state[_MEAN if averaged else "network"]
    return network


def _expect_shapes(begun: dict[str, Tensor], student: SplitReader) -> None:
    shapes = {name: weight.shape for name, weight in student.state_dict().items()}
    if any(shapes.get(name) != weight.shape for name, weight in begun.items()):
        raise DataError(
            "the run that it begins with has another number of neurons, so there is no mean of "
            "both: give that number by --neurons, or leave out --average"
        )


def _of_bundle(directory: Path, layers: int) -> dict[str, Tensor]:
    bundle = load_bundle(directory)
    apart = bundle.manifest.reader.apart
    if apart is None:
        raise DataError(
            f"the reader of {directory} sees question and passage together in every layer: begin "
            "with a bundle whose reader has some of them apart"
        )
    return restored_split_reader(directory / apart.lower, bundle.reader, layers)
