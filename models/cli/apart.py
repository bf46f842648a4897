"""`winnow models train-apart`: a reader half of whose work can be done beforehand."""

from typing import Annotated

import typer

from models.cli.options import (
    BUNDLE,
    EVERY,
    QUANTISED,
    QUESTIONS,
    RATE,
    SEED,
    WEIGHTS,
    WORK,
    BundleOption,
    EveryOption,
    NegativesOption,
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
from models.steps import apart
from models.steps.ladder import WHOLE
from models.steps.ranking import RANKED
from models.training.apart_task import ApartPlan
from models.training.loop import Schedule
from models.training.reading_task import ReadingPlan
from models.workspace import Workspace
from winnow.bundle import load_bundle


def train_apart(
    layers: Annotated[
        int,
        typer.Option(
            min=1, max=WHOLE - 1, help="Lower layers in which question and passage are apart."
        ),
    ] = 4,
    weights: WeightsOption = WEIGHTS,
    work: WorkOption = WORK,
    bundle: BundleOption = BUNDLE,
    negatives: NegativesOption = 2,
    questions: QuestionsOption = QUESTIONS,
    rate: RateOption = RATE,
    quantised: QuantisedOption = QUANTISED,
    scale: ScaleOption = 1.0,
    seed: SeedOption = SEED,
    every: EveryOption = EVERY,
) -> None:
    """Train a reader whose lower layers look at question and passage apart.

    What they make of a passage is computed when it is indexed. The trained reader teaches it; where
    there is none, that of the bundle. After an interruption, the same command continues.
    """
    place = Workspace(work).made()
    plan = ReadingPlan(scaled(RANKED, scale), questions, negatives)
    schedule = Schedule(rate, quantised=quantised, seed=seed)
    with minilm(weights) as directory:
        both = (plan, ApartPlan(layers))
        apart.train_apart(directory, place, load_bundle(bundle), both, schedule, every)
