"""Commands of `winnow models` that measure a bundle, and the gate that it has to pass."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from models.assemble import amend
from models.cli import options
from models.data import DataDirectory
from models.measuring.verify import Verdict
from models.network.weights import minilm
from models.steps import verification
from models.steps.accuracy import expect_same, gold_figures
from models.workspace import Workspace
from winnow.bundle import read_manifest
from winnow.cli.output import AsJson, print_json


def measure(
    bundle: options.BundleOption = options.BUNDLE,
    data: options.DataOption = options.DATA,
    work: options.WorkOption = options.WORK,
    layers: options.LayersOption = None,
    apart: options.ApartOption = 0,
) -> None:
    """Measure exact match and F1 at gold paragraphs and write them into the bundle."""
    kind = options.reader_kind(layers, apart)
    gold = gold_figures(Workspace(work), bundle, DataDirectory(data), None, kind)
    record_accuracy(bundle, gold=gold)
    print_json(gold)


def record(
    evaluation: Annotated[
        list[str],
        typer.Option(
            help="NAME=FILE: a question set, and the output of winnow evaluate --max-loss 0 --json."
        ),
    ],
    index: Annotated[str, typer.Option(help="Contents of the index, in words.")],
    bundle: options.BundleOption = options.BUNDLE,
) -> None:
    """Write the accuracy of a running system into the bundle.

    For each set of questions this is exact match and F1 by the number of passages read.
    """
    curves = dict(map(_curve, evaluation))
    record_accuracy(bundle, passages_read=curves, index=index)
    print_json(curves)


def record_accuracy(bundle: Path, **parts: Any) -> None:
    """Replaces parts of the accuracy that `bundle.json` states, such as `gold`."""
    amend(bundle, accuracy={**read_manifest(bundle).accuracy, **parts})


def _curve(evaluation: str) -> tuple[str, dict[str, dict[str, float]]]:
    """Returns the name in NAME=FILE, and EM and F1 by passages read."""
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


def verify(
    bundle: options.BundleOption = options.BUNDLE,
    data: options.DataOption = options.DATA,
    weights: options.WeightsOption = options.WEIGHTS,
    work: options.WorkOption = options.WORK,
    max_loss: options.MaxLossOption = options.MAX_LOSS,
    layers: options.LayersOption = None,
    apart: options.ApartOption = 0,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Questions to use of each set.", show_default="all"),
    ] = None,
    record_gold: Annotated[
        bool, typer.Option("--record", help="Write the measured accuracy into the bundle.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare PyTorch, ONNX and int8 on real text.

    Exits with 1 if a graph differs from PyTorch, or if quantisation loses too much.
    """
    if record_gold and limit is not None:
        raise typer.BadParameter(
            f"--limit {limit} measures a part of the questions, which is not the accuracy of the "
            "bundle: leave out --limit or --record"
        )
    kind = options.reader_kind(layers, apart)
    expect_same(Workspace(work), bundle, kind)
    with minilm(weights) as directory:
        verdict, gold = verification.verify(
            directory, Workspace(work), bundle, DataDirectory(data), max_loss, limit, kind
        )
    if record_gold:
        record_accuracy(bundle, gold=gold)
    if as_json:
        print_json(verdict.as_json())
    else:
        typer.echo(_text(verdict))
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
