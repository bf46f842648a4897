"""`winnow models assemble` and `calibrate`: a bundle out of trained networks."""

import shutil
from pathlib import Path
from typing import Annotated

import typer

from models.cli.options import (
    BUNDLE,
    NAME,
    SEED,
    TEACHER,
    VERSION,
    WEIGHTS,
    WORK,
    ApartOption,
    BundleOption,
    LayersOption,
    MaxAnswerTokensOption,
    SeedOption,
    VersionOption,
    WeightsOption,
    WorkOption,
    reader_kind,
)
from models.network.weights import minilm
from models.steps import calibration
from models.steps.apart import export_apart
from models.steps.bundle import MAX_ANSWER_TOKENS, Naming, make_bundle
from models.steps.graphs import export_encoder, export_reader
from models.steps.students import export_small_reader
from models.workspace import Workspace
from winnow.bundle import load_bundle


def assemble(
    bundle: Annotated[
        Path | None,
        typer.Option(
            help="Directory of the bundle.",
            show_default="bundles/default with --apart, else bundles/whole",
        ),
    ] = None,
    weights: WeightsOption = WEIGHTS,
    work: WorkOption = WORK,
    name: Annotated[
        str | None,
        typer.Option(
            help="Name of the bundle.", show_default=f"{NAME} with --apart, else {NAME}-whole"
        ),
    ] = None,
    version: VersionOption = VERSION,
    max_answer_tokens: MaxAnswerTokensOption = MAX_ANSWER_TOKENS,
    layers: LayersOption = None,
    apart: ApartOption = 0,
    encoder_of: Annotated[
        Path | None,
        typer.Option(
            help="Bundle whose encoder is taken over, so that indexes stay what they are.",
            show_default="the trained one",
        ),
    ] = None,
) -> None:
    """Export the trained networks in int8 and make a bundle of them."""
    kind = reader_kind(layers, apart)
    place = Workspace(work)
    with minilm(weights) as directory:
        if apart:
            export_apart(directory, place, apart)
        elif layers is not None:
            export_small_reader(directory, place, layers)
        else:
            export_reader(directory, place)
        if encoder_of is None:
            export_encoder(directory, place)
        else:
            shutil.copyfile(load_bundle(encoder_of).passage_encoder, place.graph("encoder", "int8"))
        about = Naming(name or (NAME if apart else f"{NAME}-whole"), version, max_answer_tokens)
        target = bundle or (BUNDLE if apart else TEACHER)
        make_bundle(directory, place, target, about, kind, encoder_of)
    typer.echo(f"{target}: {sum(f.stat().st_size for f in target.iterdir()) / 1e6:.1f} MB")


def calibrate(
    bundle: BundleOption = BUNDLE,
    work: WorkOption = WORK,
    seed: SeedOption = SEED,
    found: Annotated[
        bool,
        typer.Option(
            "--found",
            help="Fit on the passages that mine-ranking found; matching words stay worth what they "
            "are.",
        ),
    ] = False,
) -> None:
    """Fit the final score on held-out questions and write it into the bundle.

    Also fits the worth of matching words in retrieval, and the rules for stopping early.
    """
    fitted = calibration.calibrate_on_found if found else calibration.calibrate
    score = fitted(Workspace(work), bundle, seed, typer.echo)
    typer.echo(
        f"score = {score.relevance:.4f} relevance + {score.span:.4f} span "
        f"+ {score.distance:.4f} distance; no answer below {score.no_answer_below:.3f}"
    )
