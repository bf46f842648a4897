"""Commands of `winnow models` that make bundles: one, every step of it, and every combination."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from models.cli import options
from models.cli.accuracy import verify
from models.cli.mining import mine
from models.cli.training import train_encoder, train_reader
from models.network.weights import minilm
from models.steps import calibration
from models.steps.bundle import (
    ENCODERS,
    MAX_ANSWER_TOKENS,
    READERS,
    WHOLE,
    BundleNaming,
    LadderBundle,
    make_bundle,
    make_rung,
    rungs,
    share_score,
)
from models.steps.graphs import export_encoder, export_reader
from models.steps.mining import is_mined
from models.steps.split_reader import export_split_reader
from models.steps.students import export_small_encoder, export_small_reader
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
    weights: options.WeightsOption = options.WEIGHTS,
    work: options.WorkOption = options.WORK,
    name: Annotated[
        str | None,
        typer.Option(
            help="Name of the bundle.",
            show_default=f"{options.NAME} with --apart, else {options.NAME}-whole",
        ),
    ] = None,
    version: options.VersionOption = options.VERSION,
    max_answer_tokens: options.MaxAnswerTokensOption = MAX_ANSWER_TOKENS,
    layers: options.LayersOption = None,
    apart: options.ApartOption = 0,
    encoder_of: Annotated[
        Path | None,
        typer.Option(
            help="Bundle whose encoder is taken over, so that indexes stay what they are.",
            show_default="the trained one",
        ),
    ] = None,
) -> None:
    """Export the trained networks in int8 and make a bundle of them."""
    kind = options.reader_kind(layers, apart)
    place = Workspace(work)
    with minilm(weights) as directory:
        if apart:
            export_split_reader(directory, place, apart)
        elif layers is not None:
            export_small_reader(directory, place, layers)
        else:
            export_reader(directory, place)
        if encoder_of is None:
            export_encoder(directory, place)
        else:
            shutil.copyfile(load_bundle(encoder_of).passage_encoder, place.graph("encoder", "int8"))
        about = BundleNaming(
            name or (options.NAME if apart else f"{options.NAME}-whole"), version, max_answer_tokens
        )
        target = bundle or (options.BUNDLE if apart else options.TEACHER)
        make_bundle(directory, place, target, about, kind, encoder_of)
    typer.echo(f"{target}: {sum(f.stat().st_size for f in target.iterdir()) / 1e6:.1f} MB")


def calibrate(
    bundle: options.BundleOption = options.BUNDLE,
    work: options.WorkOption = options.WORK,
    seed: options.SeedOption = options.SEED,
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


def build(
    data: options.DataOption = options.DATA,
    weights: options.WeightsOption = options.WEIGHTS,
    work: options.WorkOption = options.WORK,
    bundle: options.BundleOption = options.TEACHER,
    extra: options.ExtraOption = options.EXTRA,
    scale: options.ScaleOption = 1.0,
    seed: options.SeedOption = options.SEED,
    max_loss: options.MaxLossOption = options.MAX_LOSS,
) -> None:
    """Make a bundle with a whole reader from data and pretrained weights.

    Runs mine, train-encoder, mine, train-reader, assemble, calibrate and verify, in this order.
    After an interruption, the same command continues. Takes about three hours on two cores with
    bfloat16.
    """
    with minilm(weights) as directory:
        _mine_if_needed(data, directory, work, extra)
        train_encoder(directory, work, scale=scale, seed=seed)
        _mine_if_needed(data, directory, work, extra)
        train_reader(directory, work, scale=scale, seed=seed)
        assemble(bundle, directory, work)
        calibrate(bundle, work, seed)
        verify(bundle, data, directory, work, max_loss, record_gold=True)


def _mine_if_needed(data: Path, weights: Path, work: Path, extra: int) -> None:
    place = Workspace(work).made()
    export_encoder(weights, place)
    if not is_mined(place):
        mine(data, weights, work, extra)


def ladder(
    out: Annotated[Path, typer.Option(help="Directory for the bundles, one subdirectory each.")],
    bundle: options.BundleOption = options.TEACHER,
    data: options.DataOption = options.DATA,
    weights: options.WeightsOption = options.WEIGHTS,
    work: options.WorkOption = options.WORK,
    reader: Annotated[
        list[int] | None,
        typer.Option(
            min=1, max=WHOLE, help="Layers of a smaller reader.", show_default="4, 3, 2 and 1"
        ),
    ] = None,
    encoder: Annotated[
        list[int] | None,
        typer.Option(
            min=1, max=WHOLE, help="Layers of a smaller question encoder.", show_default="3 and 2"
        ),
    ] = None,
    scale: Annotated[
        float,
        typer.Option(
            min=0.01,
            help="Length of the readers' training: 0.5 is half of the full one.",
        ),
    ] = 0.4,
    seed: options.SeedOption = options.SEED,
) -> None:
    """Train smaller networks and make a bundle of every combination.

    The smaller ones are readers and question encoders. Needs the directory --work of an earlier
    build, and its bundle. After an interruption, the same command continues.
    """
    place = Workspace(work)
    readers, encoders = reader or READERS, encoder or ENCODERS
    with minilm(weights) as directory:
        for layers in encoders:
            train_encoder(directory, work, data, layers, seed=seed)
            export_small_encoder(directory, place, layers)
        for layers in readers:
            train_reader(directory, work, bundle, layers, scale=scale, seed=seed)
            export_small_reader(directory, place, layers)
        _make_rungs(directory, place, out, None, bundle, encoders)
        for layers in readers:
            first = out / LadderBundle(layers).name
            make_rung(directory, place, first, LadderBundle(layers))
            calibrate(first, work, seed)
            _make_rungs(directory, place, out, layers, first, encoders)


def _make_rungs(
    weights: Path,
    work: Workspace,
    out: Path,
    reader: int | None,
    calibrated: Path,
    encoders: Sequence[int],
) -> None:
    """Every bundle with this reader, each with the score of the calibrated one."""
    for rung in rungs(reader, encoders):
        make_rung(weights, work, out / rung.name, rung)
        share_score(calibrated, out / rung.name)
        typer.echo(out / rung.name)
