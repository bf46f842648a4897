"""`winnow models train-reader`: the whole reader, or a smaller one."""

from dataclasses import replace
from typing import Annotated

import typer

from models.cli.options import (
    EVERY,
    QUANTISED,
    QUESTIONS,
    RATE,
    SEED,
    TEACHER,
    WEIGHTS,
    WORK,
    BundleOption,
    EveryOption,
    LayersOption,
    QuantisedOption,
    QuestionsOption,
    RateOption,
    ScaleOption,
    SeedOption,
    WeightsOption,
    WorkOption,
    scaled,
)
from models.network.weights import minilm
from models.steps import reader
from models.steps.students import train_small_reader
from models.training.distilling_task import DistillingPlan
from models.training.loop import Schedule
from models.training.reading_task import ReadingPlan
from models.workspace import Workspace
from winnow.bundle import load_bundle


def train_reader(
    weights: WeightsOption = WEIGHTS,
    work: WorkOption = WORK,
    bundle: BundleOption = TEACHER,
    layers: LayersOption = None,
    members: Annotated[
        int,
        typer.Option(min=1, max=reader.MEMBERS, help="Training runs; their weights are averaged."),
    ] = reader.MEMBERS,
    negatives: Annotated[int, typer.Option(min=1, help="Hard negatives of each question.")] = 1,
    questions: QuestionsOption = QUESTIONS,
    rate: RateOption = RATE,
    quantised: QuantisedOption = QUANTISED,
    scale: ScaleOption = 1.0,
    seed: SeedOption = SEED,
    every: EveryOption = EVERY,
) -> None:
    """Train the reader on mined questions.

    After an interruption, the same command continues from the last checkpoint. A run takes about
    forty minutes on two cores with bfloat16. Preload jemalloc where you can: glibc's allocator may
    spend most of the time in the kernel.

    With --layers, one smaller reader is trained. The trained one teaches it; where there is none,
    that of the bundle.
    """
    place = Workspace(work)
    plan = ReadingPlan(scaled(reader.READ, scale), questions, negatives)
    schedule = Schedule(rate, quantised=quantised, seed=seed)
    with minilm(weights) as directory:
        if layers is None:
            for number, run in enumerate(place.reader_runs(members)):
                own = replace(schedule, seed=seed + number)
                reader.train_reader(directory, place, plan, own, every, run)
        else:
            both = (plan, DistillingPlan(layers))
            train_small_reader(directory, place, load_bundle(bundle), both, schedule, every)
