"""`winnow models mine-ranking` and `train-ranking`: the reader meets what the retriever finds."""

from pathlib import Path
from typing import Annotated

import typer

from models.cli.options import (
    ABSOLUTE,
    DATA,
    EVERY,
    QUANTISED,
    QUESTIONS,
    SEED,
    TEACHER,
    WEIGHTS,
    WORK,
    AbsoluteOption,
    BundleOption,
    ClozesOption,
    DataOption,
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
from models.data.directory import DataDirectory
from models.network.weights import minilm
from models.steps import ranking
from models.steps.clozes import with_clozes
from models.training.loop import Schedule
from models.training.reading_task import ReadingPlan
from models.workspace import Workspace
from winnow.bundle import load_bundle
from winnow.quoting import many


def mine_ranking(
    index: Annotated[
        Path,
        typer.Option(
            help="Index of Wikipedia and of the training paragraphs (python -m bench corpus)."
        ),
    ],
    data: DataOption = DATA,
    bundle: BundleOption = TEACHER,
    work: WorkOption = WORK,
) -> None:
    """Find the passages that the bundle's retriever has for every training question.

    Takes about twenty minutes on two cores. After an interruption, the same command continues.
    """
    place = Workspace(work)
    count = ranking.mine_ranking(DataDirectory(data), index, load_bundle(bundle), place)
    typer.echo(f"{place.ranked}: {many(count, 'question')}")


def train_ranking(
    weights: WeightsOption = WEIGHTS,
    work: WorkOption = WORK,
    bundle: BundleOption = TEACHER,
    clozes: ClozesOption = 0.0,
    negatives: NegativesOption = 4,
    questions: QuestionsOption = QUESTIONS,
    absolute: AbsoluteOption = ABSOLUTE,
    rate: RateOption = 3e-5,
    quantised: QuantisedOption = QUANTISED,
    scale: ScaleOption = 1.0,
    seed: SeedOption = SEED,
    every: EveryOption = EVERY,
) -> None:
    """Train the reader to tell the right passage from those that are retrieved beside it.

    Begins with the reader that `train-reader` trained; where there is none, with the bundle's.
    Takes about an hour on two cores with bfloat16. After an interruption, the same command
    continues.
    """
    place = Workspace(work)
    passes = with_clozes(scaled(ranking.RANKED, scale), clozes)
    plan = ReadingPlan(passes, questions, negatives, absolute)
    schedule = Schedule(rate, quantised=quantised, seed=seed)
    with minilm(weights) as directory:
        ranking.train_ranking(directory, place, load_bundle(bundle), plan, schedule, every)
