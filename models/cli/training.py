"""Commands of `winnow models` that train: encoders and readers, whole, smaller or split."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from models.cli import options
from models.data import DataDirectory
from models.network.weights import minilm
from models.steps import ranking, split_reader, training
from models.steps.bundle import WHOLE
from models.steps.clozes import with_clozes
from models.steps.students import train_small_encoder, train_small_reader
from models.steps.training import READ
from models.training.encoding_task import EncodingPlan
from models.training.loop import Schedule
from models.training.question_task import QuestionPlan
from models.training.reading_task import ReadingPlan
from models.training.taught_task import DistillingPlan, SplitPlan
from models.workspace import Workspace
from winnow.bundle import load_bundle

_WARMUP = 0.1
_ENCODER_RATE, _SMALL_ENCODER_RATE = 1e-4, 5e-4


def train_encoder(
    weights: options.WeightsOption = options.WEIGHTS,
    work: options.WorkOption = options.WORK,
    data: options.DataOption = options.DATA,
    layers: options.LayersOption = None,
    passages: Annotated[int, typer.Option(min=2, help="Passages in a training step.")] = 32,
    rate: Annotated[
        float | None,
        typer.Option(min=0, help="Peak learning rate.", show_default="1e-4, or 5e-4 with --layers"),
    ] = None,
    quantised: options.QuantisedOption = options.QUANTISED,
    scale: options.ScaleOption = 1.0,
    seed: options.SeedOption = options.SEED,
    every: options.EveryOption = options.EVERY,
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
            schedule = _schedule(_ENCODER_RATE if rate is None else rate, quantised, seed)
            plan = EncodingPlan(passes=options.scaled(training.ENCODED, scale), passages=passages)
            training.train_encoder(directory, place, plan, schedule, every)
        else:
            schedule = _schedule(_SMALL_ENCODER_RATE if rate is None else rate, quantised, seed)
            small = QuestionPlan(layers=layers, passes=scale)
            train_small_encoder(directory, place, DataDirectory(data), small, schedule, every)


def _schedule(rate: float, quantised: float, seed: int) -> Schedule:
    return Schedule(rate, _WARMUP, quantised, seed)


def train_reader(
    weights: options.WeightsOption = options.WEIGHTS,
    work: options.WorkOption = options.WORK,
    bundle: options.BundleOption = options.TEACHER,
    layers: options.LayersOption = None,
    members: Annotated[
        int,
        typer.Option(
            min=1, max=training.MEMBERS, help="Training runs; their weights are averaged."
        ),
    ] = training.MEMBERS,
    negatives: Annotated[int, typer.Option(min=1, help="Hard negatives of each question.")] = 1,
    questions: options.QuestionsOption = options.QUESTIONS,
    rate: options.RateOption = options.RATE,
    quantised: options.QuantisedOption = options.QUANTISED,
    scale: options.ScaleOption = 1.0,
    seed: options.SeedOption = options.SEED,
    every: options.EveryOption = options.EVERY,
) -> None:
    """Train the reader on mined questions.

    After an interruption, the same command continues from the last checkpoint. A run takes about
    forty minutes on two cores with bfloat16. Preload jemalloc where you can: glibc's allocator may
    spend most of the time in the kernel.

    With --layers, one smaller reader is trained. The trained one teaches it; where there is none,
    that of the bundle.
    """
    place = Workspace(work)
    plan = ReadingPlan(options.scaled(training.READ, scale), questions, negatives)
    schedule = Schedule(rate, quantised=quantised, seed=seed)
    with minilm(weights) as directory:
        if layers is None:
            for number, run in enumerate(place.reader_runs(members)):
                own = replace(schedule, seed=seed + number)
                training.train_reader(directory, place, plan, own, every, run)
        else:
            both = (plan, DistillingPlan(layers))
            train_small_reader(directory, place, load_bundle(bundle), both, schedule, every)


def train_ranking(
    weights: options.WeightsOption = options.WEIGHTS,
    work: options.WorkOption = options.WORK,
    bundle: options.BundleOption = options.TEACHER,
    clozes: options.ClozesOption = 0.0,
    negatives: options.NegativesOption = 4,
    questions: options.QuestionsOption = options.QUESTIONS,
    absolute: options.AbsoluteOption = options.ABSOLUTE,
    rate: options.RateOption = 3e-5,
    quantised: options.QuantisedOption = options.QUANTISED,
    scale: options.ScaleOption = 1.0,
    seed: options.SeedOption = options.SEED,
    every: options.EveryOption = options.EVERY,
) -> None:
    """Train the reader to tell the right passage from those that are retrieved beside it.

    Begins with the reader that `train-reader` trained; where there is none, with the bundle's.
    Takes about an hour on two cores with bfloat16. After an interruption, the same command
    continues.
    """
    place = Workspace(work)
    passes = with_clozes(options.scaled(ranking.RANKED, scale), clozes)
    plan = ReadingPlan(passes, questions, negatives, absolute)
    schedule = Schedule(rate, quantised=quantised, seed=seed)
    with minilm(weights) as directory:
        ranking.train_ranking(directory, place, load_bundle(bundle), plan, schedule, every)


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
    weights: options.WeightsOption = options.WEIGHTS,
    work: options.WorkOption = options.WORK,
    bundle: options.BundleOption = options.TEACHER,
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
    clozes: options.ClozesOption = 0.0,
    negatives: options.NegativesOption = 1,
    questions: options.QuestionsOption = options.QUESTIONS,
    absolute: options.AbsoluteOption = options.ABSOLUTE,
    rate: options.RateOption = options.RATE,
    quantised: options.QuantisedOption = options.QUANTISED,
    scale: options.ScaleOption = 1.0,
    seed: options.SeedOption = options.SEED,
    every: options.EveryOption = options.EVERY,
) -> None:
    """Train a reader whose lower layers look at question and passage apart.

    What they make of a passage is computed when it is indexed. The trained reader teaches it; where
    there is none, that of the bundle. After an interruption, the same command continues.
    """
    if average and begin_with is None:
        raise typer.BadParameter("--average needs --begin-with: a run to average with")
    place = Workspace(work)
    passes = with_clozes(options.scaled(READ, scale), clozes)
    plan = ReadingPlan(passes, questions, negatives, absolute)
    begun = str(begin_with.resolve()) if begin_with else ""
    taught = SplitPlan(layers, neurons, begun, average)
    if own_ranking:
        taught = replace(taught, answers=1.0, fading=FADING, ranks=False)
    schedule = Schedule(rate, quantised=quantised, seed=seed)
    with minilm(weights) as directory:
        both = (plan, taught)
        split_reader.train_split_reader(
            directory, place, load_bundle(bundle), both, schedule, every
        )
