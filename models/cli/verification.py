"""`winnow models verify`: the gate that a bundle passes, or not."""

import json
from typing import Annotated

import typer

from models.cli.accuracy import record_accuracy
from models.cli.options import (
    BUNDLE,
    DATA,
    MAX_LOSS,
    WEIGHTS,
    WORK,
    ApartOption,
    BundleOption,
    DataOption,
    JsonOption,
    LayersOption,
    MaxLossOption,
    WeightsOption,
    WorkOption,
    reader_kind,
)
from models.data.directory import DataDirectory
from models.measuring.verify import Verdict
from models.network.weights import minilm
from models.steps import verification
from models.steps.gold import expect_same
from models.workspace import Workspace


def verify(
    bundle: BundleOption = BUNDLE,
    data: DataOption = DATA,
    weights: WeightsOption = WEIGHTS,
    work: WorkOption = WORK,
    max_loss: MaxLossOption = MAX_LOSS,
    layers: LayersOption = None,
    apart: ApartOption = 0,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Questions to use of each set.", show_default="all"),
    ] = None,
    record_gold: Annotated[
        bool, typer.Option("--record", help="Write the measured accuracy into the bundle.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Compare PyTorch, ONNX and int8 on real text.

    Exits with 1 if a graph differs from PyTorch, or if quantisation loses too much.
    """
    if record_gold and limit is not None:
        raise typer.BadParameter(
            f"--limit {limit} measures a part of the questions, which is not the accuracy of the "
            "bundle: leave out --limit or --record"
        )
    kind = reader_kind(layers, apart)
    expect_same(Workspace(work), bundle, kind)
    with minilm(weights) as directory:
        verdict, gold = verification.verify(
            directory, Workspace(work), bundle, DataDirectory(data), max_loss, limit, kind
        )
    if record_gold:
        record_accuracy(bundle, gold=gold)
    typer.echo(json.dumps(verdict.as_json(), indent=2) if as_json else _text(verdict))
    raise typer.Exit(1 if verdict.faults else 0)


def _text(verdict: Verdict) -> str:
    lines = [f"reader: ONNX differs from PyTorch by {verdict.reader_difference:.1e}"]
    if verdict.encoder is not None:
        differs = f"encoder: ONNX differs from PyTorch by {verdict.encoder.difference:.1e}"
        lines.insert(0, f"{differs}; int8 has cosine {verdict.encoder.cosine:.4f}")
    for name, found in verdict.exact_match.items():
        figures = ", ".join(f"{exact:.2f} {precision}" for precision, exact in found.items())
        lines.append(f"{name}: exact match {figures}")
    return "\n".join([*lines, *(f"refused: {fault}" for fault in verdict.faults)])
