"""Commands of `winnow models` that train encoders and readers."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from models.cli import options
from models.data import DataDirectory
from models.network.weights import open_minilm
from models.steps import ranking, split_reader, training
from models.steps.bundle import MINILM_LAYERS
from models.steps.clozes import add_cloze_passes
from models.steps.students import train_small_encoder, train_small_reader
from models.training.encoding_task import EncodingPlan
from models.training.loop import Schedule
from models.training.question_task import QuestionPlan
from models.training.reading_task import ReadingPlan
from models.training.taught_task import DistillingPlan, SplitReaderPlan
from models.workspace import Workspace
from winnow.bundle import load_bundle

_WARMUP = 0.1
_ENCODER_RATE, _SMALL_ENCODER_RATE = 1e-4, 5e-4


def train_encoder(
    base_weights: options.WeightsOption = options.WEIGHTS,
    work: options.WorkOption = options.WORK,
    data: options.DataOption = options.DATA,
    layers: options.LayersOption = None,
    passages: Annotated[int, typer.Option(min=2, help="Passages in a training step.")] = 32,
    rate: Annotated[
        float | None,
        typer.Option(min=0, help="Peak learning rate.", show_default="1e-4, or 5e-4 with --layers"),
    ] = None,
    quantised_share: options.QuantisedShareOption = options.QUANTISED_SHARE,
    scale: options.ScaleOption = 1.0,
    seed: options.SeedOption = options.SEED,
    checkpoint_every: options.CheckpointEveryOption = options.CHECKPOINT_EVERY,
) -> None:
    """Train the encoder on mined questions.

    After an interruption, the same command continues from the last checkpoint. Run mine again
    afterwards, because the trained encoder makes other mistakes.

    With --layers, trains a smaller question encoder to give the same vectors. Indexes remain valid.
    """
    workspace = Workspace(work)
    if rate is None:
        rate = _ENCODER_RATE if layers is None else _SMALL_ENCODER_RATE
    schedule = Schedule(rate, _WARMUP, quantised_share, seed)
    with open_minilm(base_weights) as directory:
        if layers is None:
            passes = options.scale_passes(training.ENCODER_PASSES, scale)
            plan = EncodingPlan(passes=passes, passages=passages)
            training.train_encoder(directory, workspace, plan, schedule, checkpoint_every)
        else:
            student = QuestionPlan(layers=layers, passes=scale)
            train_small_encoder(
                directory, workspace, DataDirectory(data), student, schedule, checkpoint_every
            )


def train_reader(
    base_weights: options.WeightsOption = options.WEIGHTS,
    work: options.WorkOption = options.WORK,
    bundle: options.BundleOption = options.TEACHER,
    layers: options.LayersOption = None,
    members: Annotated[
        int,
        typer.Option(min=1, max=training.MEMBERS, help="Training runs whose weights are averaged."),
    ] = training.MEMBERS,
    negatives: Annotated[int, typer.Option(min=1, help="Hard negatives of each question.")] = 1,
    questions: options.QuestionsOption = options.QUESTIONS,
    rate: options.RateOption = options.RATE,
    quantised_share: options.QuantisedShareOption = options.QUANTISED_SHARE,
    scale: options.ScaleOption = 1.0,
    seed: options.SeedOption = options.SEED,
    checkpoint_every: options.CheckpointEveryOption = options.CHECKPOINT_EVERY,
) -> None:
    """Train the reader on mined questions.

    After an interruption, the same command continues from the last checkpoint. A run takes about
    forty minutes on two cores with bfloat16. Preload jemalloc if possible: glibc's allocator may
    spend most of the time in the kernel.

    With --layers, trains one smaller reader. Its teacher is the trained reader, or the bundle's
    reader if none was trained.
    """
    workspace = Workspace(work)
    plan = ReadingPlan(options.scale_passes(training.READER_PASSES, scale), questions, negatives)
    schedule = Schedule(rate, quantised=quantised_share, seed=seed)
    with open_minilm(base_weights) as directory:
        if layers is None:
            for number, run in enumerate(workspace.reader_run_paths(members)):
                seeded = replace(schedule, seed=seed + number)
                training.train_reader(directory, workspace, plan, seeded, checkpoint_every, run)
        else:
            plans = (plan, DistillingPlan(layers))
            train_small_reader(
                directory, workspace, load_bundle(bundle), plans, schedule, checkpoint_every
            )


def train_ranking(
    base_weights: options.WeightsOption = options.WEIGHTS,
    work: options.WorkOption = options.WORK,
    bundle: options.BundleOption = options.TEACHER,
    clozes: options.ClozesOption = 0.0,
    negatives: options.NegativesOption = 4,
    questions: options.QuestionsOption = options.QUESTIONS,
    absolute_weight: options.AbsoluteWeightOption = options.ABSOLUTE_WEIGHT,
    rate: options.RateOption = 3e-5,
    quantised_share: options.QuantisedShareOption = options.QUANTISED_SHARE,
    scale: options.ScaleOption = 1.0,
    seed: options.SeedOption = options.SEED,
    checkpoint_every: options.CheckpointEveryOption = options.CHECKPOINT_EVERY,
) -> None:
    """Train the reader to rank the right passage above other retrieved passages.

    Starts from the reader that `train-reader` trained, or from the bundle's reader if none was
    trained. Takes about an hour on two cores with bfloat16. After an interruption, the same command
    continues.
    """
    workspace = Workspace(work)
    passes = add_cloze_passes(options.scale_passes(ranking.RANKING_PASSES, scale), clozes)
    plan = ReadingPlan(passes, questions, negatives, absolute_weight)
    schedule = Schedule(rate, quantised=quantised_share, seed=seed)
    with open_minilm(base_weights) as directory:
        ranking.train_ranking(
            directory, workspace, load_bundle(bundle), plan, schedule, checkpoint_every
        )


_STATES_FADE = 0.7
"""Share of the run in which the weight of the teacher's states falls to 0, with --own-ranking.

A student that learns its own ranking has to move away from the teacher's states.
"""


def train_split_reader(
    layers: Annotated[
        int,
        typer.Option(
            min=1,
            max=MINILM_LAYERS - 1,
            help="Lower layers that see question and passage separately.",
        ),
    ] = 3,
    base_weights: options.WeightsOption = options.WEIGHTS,
    work: options.WorkOption = options.WORK,
    bundle: options.BundleOption = options.TEACHER,
    neurons: Annotated[
        int,
        typer.Option(
            min=0,
            help="Neurons of the feed-forward part of every upper layer. 0 keeps all.",
        ),
    ] = 0,
    begin_with: Annotated[
        Path | None,
        typer.Option(
            help="Finished checkpoint or bundle of a split reader to start from.",
            show_default="the teacher's weights",
        ),
    ] = None,
    average: Annotated[
        bool,
        typer.Option(
            "--average",
            help="Average the trained weights with those of --begin-with. Often more accurate.",
        ),
    ] = False,
    own_ranking: Annotated[
        bool,
        typer.Option(
            "--own-ranking",
            help="Learn only spans from the teacher, not its ranking of passages.",
        ),
    ] = False,
    clozes: options.ClozesOption = 0.0,
    negatives: options.NegativesOption = 1,
    questions: options.QuestionsOption = options.QUESTIONS,
    absolute_weight: options.AbsoluteWeightOption = options.ABSOLUTE_WEIGHT,
    rate: options.RateOption = options.RATE,
    quantised_share: options.QuantisedShareOption = options.QUANTISED_SHARE,
    scale: options.ScaleOption = 1.0,
    seed: options.SeedOption = options.SEED,
    checkpoint_every: options.CheckpointEveryOption = options.CHECKPOINT_EVERY,
) -> None:
    """Train a reader whose lower layers see question and passage separately.

    The states of a passage can then be computed when it is indexed. The teacher is the trained
    reader, or the bundle's reader if none was trained. After an interruption, the same command
    continues.
    """
    if average and begin_with is None:
        raise typer.BadParameter("--average needs --begin-with: name the run to average with")
    workspace = Workspace(work)
    passes = add_cloze_passes(options.scale_passes(training.READER_PASSES, scale), clozes)
    plan = ReadingPlan(passes, questions, negatives, absolute_weight)
    initial_weights = str(begin_with.resolve()) if begin_with else ""
    split_plan = SplitReaderPlan(layers, neurons, initial_weights, average)
    if own_ranking:
        split_plan = replace(split_plan, answers=1.0, fading=_STATES_FADE, ranks=False)
    schedule = Schedule(rate, quantised=quantised_share, seed=seed)
    with open_minilm(base_weights) as directory:
        split_reader.train_split_reader(
            directory,
            workspace,
            load_bundle(bundle),
            (plan, split_plan),
            schedule,
            checkpoint_every,
        )
