"""`winnow models measure-heads`: heads on public data, as the documents state them."""

import json
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

import typer

from models.cli.heads import MAX_LOSS
from models.cli.options import (
    BUNDLE,
    WEIGHTS,
    WORK,
    BundleOption,
    JsonOption,
    WeightsOption,
    WorkOption,
)
from models.data.rows import DataError
from models.heads.benchmarks import BENCHMARKS, Benchmark
from models.heads.described import Naming
from models.heads.making import Workshop, make_head
from models.heads.unfrozen import EPOCHS, measure_unfrozen
from models.network.weights import minilm
from models.workspace import Workspace
from winnow.bundle import load_bundle

_IDS = [each.id for each in BENCHMARKS]


def measure_heads(
    data: Annotated[
        Path, typer.Option(help="Directory of the public data sets, such as banking77-test.")
    ] = Path("../shared/data/heads"),
    only: Annotated[
        list[str] | None,
        typer.Option(
            help=f"Head to make: {', '.join(_IDS)}; may be given several times.",
            show_default="all heads",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(help="Directory to keep the heads in.", show_default="not kept"),
    ] = None,
    unfreeze: Annotated[
        bool,
        typer.Option("--unfreeze", help="Train the encoder, too, to see the cost of sharing it."),
    ] = False,
    bundle: BundleOption = BUNDLE,
    weights: WeightsOption = WEIGHTS,
    work: WorkOption = WORK,
    as_json: JsonOption = False,
) -> None:
    """Train a head on each public data set, and measure it on the test set.

    The heads that come with Winnow are made by this command, with --out.
    """
    if unknown := set(only or []) - set(_IDS):
        raise DataError(f"no such head: {', '.join(sorted(unknown))}; there are {', '.join(_IDS)}")
    shop = Workshop(
        load_bundle(bundle),
        Workspace(work).states,
        MAX_LOSS,
        _say,
    )
    found: dict[str, dict[str, Any]] = {}
    for each in BENCHMARKS:
        if only and each.id not in only:
            continue
        _say(f"{each.id}: {each.name}")
        began = time.monotonic()
        if unfreeze:
            with minilm(weights) as directory:
                figures = measure_unfrozen(each.job(data), shop, directory, EPOCHS)
        else:
            figures = _made(each, data, out, shop)
        found[each.id] = {**figures, "seconds": round(time.monotonic() - began)}
        if not as_json:
            typer.echo("\n".join([each.id, *(f"  {k}: {v}" for k, v in found[each.id].items())]))
    if as_json:
        typer.echo(json.dumps(found, indent=2))


def _say(text: str) -> None:
    typer.echo(text, err=True)


def _made(benchmark: Benchmark, data: Path, out: Path | None, shop: Workshop) -> dict[str, float]:
    """The accuracy of a head, and the bytes of its model."""
    naming = Naming(benchmark.id, licences={"training data": benchmark.licence}, names_only=True)
    with TemporaryDirectory() as directory:
        target = (out or Path(directory)) / benchmark.id
        made = make_head(benchmark.job(data), naming, shop, target)
        return {**made.accuracy, "bytes": made.model.bytes}
