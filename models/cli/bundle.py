"""`winnow models assemble` and `calibrate`: a bundle out of trained networks."""

from typing import Annotated

import typer

from models.cli.options import (
    BUNDLE,
    SEED,
    WEIGHTS,
    WORK,
    BundleOption,
    SeedOption,
    WeightsOption,
    WorkOption,
)
from models.network.weights import minilm
from models.steps import calibration
from models.steps.bundle import MAX_ANSWER_TOKENS, make_bundle
from models.steps.graphs import export_encoder, export_reader
from models.workspace import Workspace


def assemble(
    bundle: BundleOption = BUNDLE,
    weights: WeightsOption = WEIGHTS,
    work: WorkOption = WORK,
    name: Annotated[str, typer.Option(help="Name of the bundle.")] = "minilm-l6",
    version: Annotated[str, typer.Option(help="Version of the bundle.")] = "1.0.0",
    max_answer_tokens: Annotated[
        int, typer.Option(min=1, help="Longest answer, in tokens.")
    ] = MAX_ANSWER_TOKENS,
) -> None:
    """Export the trained networks in int8 and make a bundle of them."""
    place = Workspace(work).made()
    with minilm(weights) as directory:
        export_encoder(directory, place)
        export_reader(directory, place)
        make_bundle(directory, place, bundle, name, version, max_answer_tokens)
    typer.echo(f"{bundle}: {sum(f.stat().st_size for f in bundle.iterdir()) / 1e6:.1f} MB")


def calibrate(
    bundle: BundleOption = BUNDLE,
    work: WorkOption = WORK,
    seed: SeedOption = SEED,
) -> None:
    """Fit the final score on held-out questions and write it into the bundle.

    Also fits the worth of matching words in retrieval, and the rules for stopping early.
    """
    score = calibration.calibrate(Workspace(work), bundle, seed, typer.echo)
    typer.echo(
        f"score = {score.relevance:.4f} relevance + {score.span:.4f} span "
        f"+ {score.distance:.4f} distance; no answer below {score.no_answer_below:.3f}"
    )
