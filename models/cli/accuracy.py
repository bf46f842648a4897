"""Commands of `winnow models` that measure and verify a bundle."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from models.assemble import amend_manifest
from models.cli import options
from models.data import DataDirectory
from models.measuring.verify import Verdict
from models.network.weights import open_minilm
from models.steps import verification
from models.steps.accuracy import gold_figures, require_matching_reader
from models.workspace import Workspace
from winnow.bundle import read_manifest
from winnow.cli.output import AsJson, print_json


def measure(
    bundle: options.BundleOption = options.BUNDLE,
    data: options.DataOption = options.DATA,
    work: options.WorkOption = options.WORK,
    layers: options.LayersOption = None,
    split_layers: options.SplitLayersOption = 0,
) -> None:
    """Measure exact match and F1 on gold paragraphs and write both into the bundle."""
    kind = options.reader_kind(layers, split_layers)
    gold = gold_figures(Workspace(work), bundle, DataDirectory(data), None, kind)
    record_accuracy(bundle, gold=gold)
    print_json(gold)


def record(
    evaluation: Annotated[
        list[str],
        typer.Option(
            help="Question set and output of winnow evaluate --max-loss 0 --json, as NAME=FILE."
        ),
    ],
    index: Annotated[str, typer.Option(help="Description of the index, as free text.")],
    bundle: options.BundleOption = options.BUNDLE,
) -> None:
    """Write the accuracy of a running system into the bundle.

    Records exact match and F1 by the number of passages read, for each question set.
    """
    curves = dict(map(_parse_evaluation, evaluation))
    record_accuracy(bundle, passages_read=curves, index=index)
    print_json(curves)


def record_accuracy(bundle: Path, **fields: Any) -> None:
    """Replaces fields of `accuracy` in `bundle.json`, such as `gold`."""
    amend_manifest(bundle, accuracy={**read_manifest(bundle).accuracy, **fields})


def _parse_evaluation(evaluation: str) -> tuple[str, dict[str, dict[str, float]]]:
    """Parses NAME=FILE.

    Returns the name, and a dict from the number of passages read to exact match and F1 in percent.
    """
    name, _, file = evaluation.partition("=")
    try:
        report = json.loads(Path(file).read_text(encoding="utf-8"))
        curve = {
            str(each["passages"]): {"em": round(each["exact_match"], 2), "f1": round(each["f1"], 2)}
            for each in report["figures"]
        }
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise typer.BadParameter(
            f"{evaluation!r} is not NAME=FILE with the output of winnow evaluate --json: {error}"
        ) from error
    if report.get("max_loss") != 0:
        raise typer.BadParameter(
            f"{file} was measured with early stopping: run winnow evaluate --max-loss 0"
        )
    return name, curve


def verify(
    bundle: options.BundleOption = options.BUNDLE,
    data: options.DataOption = options.DATA,
    base_weights: options.WeightsOption = options.WEIGHTS,
    work: options.WorkOption = options.WORK,
    max_loss: options.MaxLossOption = options.MAX_LOSS,
    layers: options.LayersOption = None,
    split_layers: options.SplitLayersOption = 0,
    limit: Annotated[
        int | None,
        typer.Option(min=1, help="Maximum number of questions of each set.", show_default="all"),
    ] = None,
    record_gold: Annotated[
        bool, typer.Option("--record", help="Write the measured accuracy into the bundle.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Compare PyTorch, ONNX and int8 on real text.

    Exits with 1 if a graph differs from PyTorch, or if quantisation loses too much accuracy.
    """
    if record_gold and limit is not None:
        raise typer.BadParameter(
            f"--limit {limit} measures only some questions, and --record needs all of them: "
            "leave out --limit or --record"
        )
    kind = options.reader_kind(layers, split_layers)
    require_matching_reader(Workspace(work), bundle, kind)
    with open_minilm(base_weights) as directory:
        verdict, gold = verification.verify(
            directory, Workspace(work), bundle, DataDirectory(data), max_loss, limit, kind
        )
    if record_gold:
        record_accuracy(bundle, gold=gold)
    if as_json:
        typer.echo(json.dumps(asdict(verdict), indent=2))  # a difference may be NaN
    else:
        typer.echo(_verdict_text(verdict))
    raise typer.Exit(1 if verdict.faults else 0)


def _verdict_text(verdict: Verdict) -> str:
    lines = [f"reader: ONNX differs from PyTorch by {verdict.reader_difference:.1e}"]
    if verdict.encoder is not None:
        difference = f"encoder: ONNX differs from PyTorch by {verdict.encoder.difference:.1e}"
        lines.insert(0, f"{difference}; int8 has cosine {verdict.encoder.cosine:.4f}")
    for question_set, by_precision in verdict.exact_match.items():
        figures = ", ".join(f"{exact:.2f} {precision}" for precision, exact in by_precision.items())
        lines.append(f"{question_set}: exact match {figures}")
    return "\n".join([*lines, *(f"refused: {fault}" for fault in verdict.faults)])
