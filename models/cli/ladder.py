"""`winnow models ladder`: smaller networks, and bundles of every combination."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from models.cli.bundle import calibrate
from models.cli.encoder import train_encoder
from models.cli.options import (
    DATA,
    SEED,
    TEACHER,
    WEIGHTS,
    WORK,
    BundleOption,
    DataOption,
    SeedOption,
    WeightsOption,
    WorkOption,
)
from models.cli.reader import train_reader
from models.network.weights import minilm
from models.steps.ladder import ENCODERS, READERS, WHOLE, Rung, make_rung, rungs, share_score
from models.steps.students import export_small_encoder, export_small_reader
from models.workspace import Workspace


def ladder(
    out: Annotated[Path, typer.Option(help="Directory for the bundles, one subdirectory each.")],
    bundle: BundleOption = TEACHER,
    data: DataOption = DATA,
    weights: WeightsOption = WEIGHTS,
    work: WorkOption = WORK,
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
    seed: SeedOption = SEED,
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
            first = out / Rung(layers).name
            make_rung(directory, place, first, Rung(layers))
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
