"""The options that several commands of `winnow models` share."""

from pathlib import Path
from typing import Annotated

import typer

from models.steps.bundle import WHOLE
from models.workspace import ReaderKind
from winnow.bundle import default_bundle

DATA, WEIGHTS, WORK = Path("../shared/data"), Path("var/minilm"), Path("var/models")
BUNDLE = default_bundle()
TEACHER = BUNDLE.parent / "whole"
"""The bundle with the full cross-encoder."""
NAME = "minilm-l6"
MAX_LOSS, EXTRA, QUANTISED, EVERY, SEED = 0.5, 25_000, 0.25, 50, 1
QUESTIONS, RATE, ABSOLUTE, VERSION = 16, 2e-4, 0.5, "1.0.0"

DataOption = Annotated[
    Path, typer.Option(help="Directory of public data, with qa/ and passages/ in it.")
]
WeightsOption = Annotated[
    Path,
    typer.Option(help="Weights of all-MiniLM-L6-v2: a directory or a wheel."),
]
WorkOption = Annotated[Path, typer.Option(help="Directory of checkpoints and exported graphs.")]
BundleOption = Annotated[Path, typer.Option(help="Directory of the bundle.")]
ExtraOption = Annotated[
    int, typer.Option(min=1, help="Wikipedia passages to search for hard negatives.")
]
MaxLossOption = Annotated[
    float,
    typer.Option(
        help="Largest loss of exact match by int8 or bfloat16 on a question set, in points."
    ),
]
QuantisedOption = Annotated[
    float,
    typer.Option(min=0, max=1, help="Share of training steps, the last ones, that imitate int8."),
]
ScaleOption = Annotated[
    float, typer.Option(min=0.01, help="Length of the training: 0.5 is half as long, 2 is twice.")
]
ClozesOption = Annotated[
    float,
    typer.Option(
        min=0,
        help="Passes over the questions of mine-clozes, independent of --scale. 0 leaves them out.",
    ),
]
NegativesOption = Annotated[int, typer.Option(min=1, help="Negatives of each question.")]
ApartOption = Annotated[
    int,
    typer.Option(
        min=0,
        max=WHOLE - 1,
        help="Layers in which the reader takes question and passage apart; 0 for the whole reader.",
    ),
]
AbsoluteOption = Annotated[
    float, typer.Option(min=0, help="Weight of relevance as an absolute yes or no.")
]
QuestionsOption = Annotated[int, typer.Option(min=1, help="Questions in a training step.")]
RateOption = Annotated[float, typer.Option(min=0, help="Peak learning rate.")]
SeedOption = Annotated[int, typer.Option(help="Seed of the random numbers.")]
LayersOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=WHOLE,
        help="Layers of a smaller network, taught by the trained one.",
        show_default="the whole network",
    ),
]
EveryOption = Annotated[int, typer.Option(min=1, help="Training steps between two checkpoints.")]
VersionOption = Annotated[str, typer.Option(help="Version of the bundle.")]
MaxAnswerTokensOption = Annotated[int, typer.Option(min=1, help="Longest answer, in tokens.")]


def reader_kind(layers: int | None, apart: int) -> ReaderKind:
    """Returns the kind of reader that two options choose.

    Raises:
        typer.BadParameter: two of them.

    """
    if layers is not None and apart:
        raise typer.BadParameter(
            "a smaller reader is not taken apart: leave out --layers or --apart"
        )
    return ReaderKind(layers, apart)


def scaled(passes: dict[str, float], by: float) -> dict[str, float]:
    """Returns the passes over each source, multiplied by a factor."""
    return {source: times * by for source, times in passes.items()}
