"""Options that several commands of `winnow models` share."""

from pathlib import Path
from typing import Annotated

import typer

from models.steps.bundle import MINILM_LAYERS
from models.workspace import ReaderKind
from winnow.packaged import default_bundle

DATA, WEIGHTS, WORK = Path("../shared/data"), Path("var/minilm"), Path("var/models")
BUNDLE = default_bundle()
TEACHER = BUNDLE.parent / "whole"
"""Bundle with the full cross-encoder, which teaches smaller and split readers."""
NAME = "minilm-l6"
MAX_LOSS, EXTRA_PASSAGES, QUANTISED_SHARE, CHECKPOINT_EVERY, SEED = 0.5, 25_000, 0.25, 50, 1
QUESTIONS, RATE, ABSOLUTE_WEIGHT, VERSION = 16, 2e-4, 0.5, "1.0.0"

DataOption = Annotated[
    Path, typer.Option(help="Directory of public data, with subdirectories qa and passages.")
]
WeightsOption = Annotated[
    Path,
    typer.Option("--weights", help="Weights of all-MiniLM-L6-v2: a directory or a wheel."),
]
WorkOption = Annotated[Path, typer.Option(help="Directory of checkpoints and exported graphs.")]
BundleOption = Annotated[Path, typer.Option(help="Directory of the bundle.")]
ExtraPassagesOption = Annotated[
    int,
    typer.Option(
        "--extra", min=1, help="Number of Wikipedia passages to search for hard negatives."
    ),
]
MaxLossOption = Annotated[
    float,
    typer.Option(
        help="Largest loss of exact match that int8 or bfloat16 may cause on a set, in points."
    ),
]
QuantisedShareOption = Annotated[
    float,
    typer.Option(
        "--quantised", min=0, max=1, help="Share of steps at the end of training that imitate int8."
    ),
]
ScaleOption = Annotated[
    float, typer.Option(min=0.01, help="Factor for the length of training: 0.5 is half as long.")
]
ClozesOption = Annotated[
    float,
    typer.Option(
        min=0,
        help="Passes over cloze questions (mine-clozes), independent of --scale. 0 for none.",
    ),
]
NegativesOption = Annotated[int, typer.Option(min=1, help="Hard negatives of each question.")]
SplitLayersOption = Annotated[
    int,
    typer.Option(
        "--apart",
        min=0,
        max=MINILM_LAYERS - 1,
        help="Lower layers of a split reader that see question and passage separately. "
        "0 for a full cross-encoder.",
    ),
]
AbsoluteWeightOption = Annotated[
    float,
    typer.Option(
        "--absolute",
        min=0,
        help="Weight of the loss for judging each passage alone, relevant or not. "
        "0 trains only the ranking among passages.",
    ),
]
QuestionsOption = Annotated[int, typer.Option(min=1, help="Questions in a training step.")]
RateOption = Annotated[float, typer.Option(min=0, help="Peak learning rate.")]
SeedOption = Annotated[int, typer.Option(help="Seed of the random numbers.")]
LayersOption = Annotated[
    int | None,
    typer.Option(
        min=1,
        max=MINILM_LAYERS,
        help="Layers of a smaller network, taught by the trained network.",
        show_default="all layers",
    ),
]
CheckpointEveryOption = Annotated[
    int, typer.Option("--every", min=1, help="Training steps between two checkpoints.")
]
VersionOption = Annotated[str, typer.Option(help="Version of the bundle.")]
MaxAnswerTokensOption = Annotated[int, typer.Option(min=1, help="Longest answer, in tokens.")]


def reader_kind(layers: int | None, split_layers: int) -> ReaderKind:
    """Returns the kind of reader that --layers and --apart select.

    Raises:
        typer.BadParameter: both options are set.

    """
    if layers is not None and split_layers:
        raise typer.BadParameter("a smaller reader cannot be split: leave out --layers or --apart")
    return ReaderKind(layers, split_layers)


def scale_passes(passes: dict[str, float], factor: float) -> dict[str, float]:
    """Multiplies the number of passes over each source by a factor."""
    return {source: count * factor for source, count in passes.items()}
