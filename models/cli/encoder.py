"""`winnow models train-encoder`: the whole encoder, or a smaller one for questions."""

from typing import Annotated

import typer

from models.cli.options import (
    DATA,
    EVERY,
    QUANTISED,
    SEED,
    WEIGHTS,
    WORK,
    DataOption,
    EveryOption,
    LayersOption,
    QuantisedOption,
    ScaleOption,
    SeedOption,
    WeightsOption,
    WorkOption,
    scaled,
)
from models.data.directory import DataDirectory
from models.network.weights import minilm
from models.steps import encoder
from models.steps.students import train_small_encoder
from models.training.encoding_task import EncodingPlan
from models.training.loop import Schedule
from models.training.question_task import QuestionPlan
from models.workspace import Workspace

_WARMUP = 0.1
_RATE, _STUDENT_RATE = 1e-4, 5e-4


def train_encoder(
    weights: WeightsOption = WEIGHTS,
    work: WorkOption = WORK,
    data: DataOption = DATA,
    layers: LayersOption = None,
    passages: Annotated[int, typer.Option(min=2, help="Passages in a training step.")] = 32,
    rate: Annotated[
        float | None,
        typer.Option(
            min=0, help="Highest learning rate.", show_default="1e-4, or 5e-4 with --layers"
        ),
    ] = None,
    quantised: QuantisedOption = QUANTISED,
    scale: ScaleOption = 1.0,
    seed: SeedOption = SEED,
    every: EveryOption = EVERY,
) -> None:
    """Train the encoder on mined questions.

    After an interruption, the same command continues from the last checkpoint. Mine again
    afterwards: another encoder makes other mistakes.

    With --layers, a smaller encoder for questions is trained to give the same vectors, so that
    indexes remain valid.
    """
    place = Workspace(work)
    with minilm(weights) as directory:
        if layers is None:
            schedule = _schedule(_RATE if rate is None else rate, quantised, seed)
            plan = EncodingPlan(scaled(encoder.ENCODED, scale), passages)
            encoder.train_encoder(directory, place, plan, schedule, every)
        else:
            schedule = _schedule(_STUDENT_RATE if rate is None else rate, quantised, seed)
            small = QuestionPlan(layers, passes=scale)
            train_small_encoder(directory, place, DataDirectory(data), small, schedule, every)


def _schedule(rate: float, quantised: float, seed: int) -> Schedule:
    return Schedule(rate, _WARMUP, quantised, seed)
