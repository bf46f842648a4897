"""`winnow models measure` and `record`: the accuracy that a bundle states of itself."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from models.assemble import amend
from models.cli.options import (
    BUNDLE,
    DATA,
    WORK,
    ApartOption,
    BundleOption,
    DataOption,
    LayersOption,
    WorkOption,
    reader_kind,
)
from models.data.directory import DataDirectory
from models.steps.gold import gold_figures
from models.workspace import Workspace
from winnow.bundle import read_manifest


def measure(
    bundle: BundleOption = BUNDLE,
    data: DataOption = DATA,
    work: WorkOption = WORK,
    layers: LayersOption = None,
    apart: ApartOption = 0,
) -> None:
    """Measure exact match and F1 at gold paragraphs and write them into the bundle."""
    kind = reader_kind(layers, apart)
    gold = gold_figures(Workspace(work), bundle, DataDirectory(data), None, kind)
    record_accuracy(bundle, gold=gold)
    typer.echo(json.dumps(gold, indent=2))


def record(
    evaluation: Annotated[
        list[str],
        typer.Option(
            help="NAME=FILE: a question set, and the output of winnow evaluate --max-loss 0 --json."
        ),
    ],
    index: Annotated[str, typer.Option(help="Contents of the index, in words.")],
    bundle: BundleOption = BUNDLE,
) -> None:
    """Write the accuracy of a running system into the bundle.

    For each set of questions this is exact match and F1 by the number of passages read.
    """
    curves = dict(map(_curve, evaluation))
    record_accuracy(bundle, passages_read=curves, index=index)
    typer.echo(json.dumps(curves, indent=2))


def record_accuracy(bundle: Path, **parts: Any) -> None:
    """Replaces parts of the accuracy that `bundle.json` states, such as `gold`."""
    amend(bundle, accuracy={**read_manifest(bundle).accuracy, **parts})


def _curve(evaluation: str) -> tuple[str, dict[str, dict[str, float]]]:
    """The name in NAME=FILE, and EM and F1 by passages read."""
    name, _, file = evaluation.partition("=")
    try:
        found = json.loads(Path(file).read_text(encoding="utf-8"))
        curve = {
            str(each["passages"]): {"em": round(each["exact_match"], 2), "f1": round(each["f1"], 2)}
            for each in found["figures"]
        }
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise typer.BadParameter(
            f"{evaluation!r} is not NAME=FILE with the output of winnow evaluate --json: {error}"
        ) from error
    if found.get("max_loss") != 0:
        raise typer.BadParameter(
            f"{file}: reading may have stopped early: make it by winnow evaluate --max-loss 0"
        )
    return name, curve
