"""`winnow models train-apart`: a reader half of whose work can be done beforehand."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from models.cli.options import (
    ABSOLUTE,
    EVERY,
    QUANTISED,
    QUESTIONS,
    RATE,
    SEED,
    TEACHER,
    WEIGHTS,
    WORK,
    AbsoluteOption,
    BundleOption,
    ClozesOption,
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
from models.steps.clozes import with_clozes
from models.steps.ladder import WHOLE
from models.steps.reader import READ
from models.training.apart_task import ApartPlan
from models.training.loop import Schedule
from models.training.reading_task import ReadingPlan
from models.workspace import Workspace
from winnow.bundle import load_bundle

FADING = 0.7
"""Share of the run after which the teacher's states count no longer: a student that ranks has to
leave them.
"""


def train_apart(
    layers: Annotated[
        int,
        typer.Option(
            min=1, max=WHOLE - 1, help="Lower layers in which question and passage are apart."
        ),
    ] = 3,
    weights: WeightsOption = WEIGHTS,
    work: WorkOption = WORK,
    bundle: BundleOption = TEACHER,
    neurons: Annotated[
        int,
        typer.Option(
            min=0,
            help="Neurons in the feed-forward part of every upper layer: fewer take less time. 0 "
            "leaves all.",
        ),
    ] = 0,
    begin_with: Annotated[
        Path | None,
        typer.Option(
            help="Checkpoint of a finished run, or a bundle with such a reader, to go on from its "
            "weights.",
            show_default="the teacher's weights",
        ),
    ] = None,
    average: Annotated[
        bool,
        typer.Option(
            "--average",
            help="Average the trained weights with those of --begin-with, which is often better.",
        ),
    ] = False,
    own_ranking: Annotated[
        bool,
        typer.Option(
            "--own-ranking",
            help="The teacher tells where the answer is in a passage, not which passage has it.",
        ),
    ] = False,
    clozes: ClozesOption = 0.0,
    negatives: NegativesOption = 1,
    questions: QuestionsOption = QUESTIONS,
    absolute: AbsoluteOption = ABSOLUTE,
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
    if average and begin_with is None:
        raise typer.BadParameter("--average needs --begin-with: a run to average with")
    place = Workspace(work)
    passes = with_clozes(scaled(READ, scale), clozes)
    plan = ReadingPlan(passes, questions, negatives, absolute)
    begun = str(begin_with.resolve()) if begin_with else ""
    taught = ApartPlan(layers, neurons, begun, average)
    if own_ranking:
        taught = replace(taught, answers=1.0, fading=FADING, ranks=False)
    schedule = Schedule(rate, quantised=quantised, seed=seed)
    with minilm(weights) as directory:
        both = (plan, taught)
        apart.train_apart(directory, place, load_bundle(bundle), both, schedule, every)
