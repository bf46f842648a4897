"""`winnow pareto`."""

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from winnow.bundle import default_bundle
from winnow.cli.pareto import levers, report
from winnow.cli.pareto.figures import PointFigures, recommend
from winnow.cli.pareto.measure import measure
from winnow.cli.pareto.point import Point, grid, untuned
from winnow.cli.pareto.report import percent
from winnow.domain.question import Retriever
from winnow.inference.runtime import Runtime
from winnow.settings.common import cores
from winnow.settings.values import bundle_place

app = typer.Typer(no_args_is_help=True, help="Accuracy against latency, measured in one run.")

_DEFAULT = default_bundle()
_UNTUNED = 10
"""Passages."""
_Index = Annotated[Path, typer.Option(help="Directory of the index to ask.")]
_Files = Annotated[
    list[Path],
    typer.Option(help="JSON lines with question and answers (.gz, .zst). May be repeated."),
]
_Out = Annotated[Path, typer.Option(help="Directory of results. The same one continues a run.")]
_Limit = Annotated[int, typer.Option(min=1, help="Questions to ask from each file, evenly spread.")]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("run")
def run_(
    index: _Index,
    questions: _Files,
    bundle: Annotated[
        list[Path] | None,
        typer.Option(
            parser=bundle_place,
            metavar="BUNDLE",
            help="Bundle to compare. May be repeated.",
            show_default="the default",
        ),
    ] = None,
    passages: Annotated[
        list[int] | None,
        typer.Option(
            min=1, max=100, help="Passages to read. May be repeated.", show_default="1 2 5 10 20"
        ),
    ] = None,
    max_loss: Annotated[
        list[float] | None,
        typer.Option(
            min=0,
            max=100,
            help="Exact match, in percent, that stopping early may lose; 0 reads every passage. "
            "May be repeated.",
            show_default="0 0.3",
        ),
    ] = None,
    retriever: Annotated[
        list[Retriever] | None,
        typer.Option(help="Retriever to compare. May be repeated.", show_default="hybrid"),
    ] = None,
    runtime: Annotated[
        list[Runtime] | None,
        typer.Option(help="Runtime to compare. May be repeated.", show_default="auto"),
    ] = None,
    first: Annotated[
        Path | None,
        typer.Option(
            "--untuned",
            parser=bundle_place,
            metavar="BUNDLE",
            help="Bundle to begin with, untuned: one thread on each node, inputs padded, ten "
            "passages, found by encoding alone. Asked every tenth question.",
        ),
    ] = None,
    out: _Out = Path("pareto"),
    limit: _Limit = 300,
    max_p95: Annotated[
        str | None,
        typer.Option(help="Recommend a point with at most this p95 latency, such as 50ms or 0.2s."),
    ] = None,
    min_exact_match: Annotated[
        float | None,
        typer.Option(
            min=0,
            max=100,
            help="Recommend the fastest point with at least this exact match, in percent.",
        ),
    ] = None,
    as_json: _Json = False,
) -> None:
    """Ask every combination the same questions, in turn, and draw accuracy against latency.

    Every bundle must encode passages as the index was encoded. Ctrl-C loses nothing: the same
    command goes on. Writes points.csv, points.json and pareto.png to --out. A failed question
    counts as wrong, and the next run asks it again. Exit code 1 if every question fails.
    """
    budget = None if max_p95 is None else milliseconds(max_p95, "--max-p95")
    points = grid(
        bundle or [_DEFAULT],
        [each.value for each in runtime or [Runtime.AUTO]],
        retriever or [Retriever.HYBRID],
        passages or [1, 2, 5, 10, 20],
        max_loss or [0.0, 0.3],
    )
    if first is not None:
        points.insert(0, Point(untuned(first), _UNTUNED, retriever=Retriever.DENSE, brief=True))
    found = measure(points, index, questions, limit, out)
    chosen = recommend(found, budget, min_exact_match)
    if as_json:
        rows = [each.as_json() for each in found]
        typer.echo(json.dumps({"points": rows, "recommended": chosen and chosen.point}, indent=2))
    else:
        _show(found)
        typer.echo(_advice(found, chosen, min_exact_match))
    _exit(found)


@app.command("levers")
def levers_(
    index: _Index,
    questions: _Files,
    bundle: Annotated[
        list[Path],
        typer.Option(
            parser=bundle_place,
            metavar="BUNDLE",
            help="Bundles, in the order of the steps: float32, then int8, then smaller ones.",
        ),
    ],
    passages: Annotated[int, typer.Option(min=1, max=100, help="Passages to read.")] = 10,
    fewer: Annotated[
        int,
        typer.Option(min=1, max=100, help="Passages to read in the steps with hybrid retrieval."),
    ] = 5,
    max_loss: Annotated[
        float,
        typer.Option(
            min=0,
            max=100,
            help="Exact match, in percent, that stopping early may lose in the last step; the "
            "others read every passage.",
        ),
    ] = 1.0,
    out: _Out = Path("levers"),
    limit: _Limit = 60,
    as_json: _Json = False,
) -> None:
    """Tune an untuned service, one change at a time, and show the effect of each.

    Exit code 1 if every question fails.
    """
    points = levers.steps(bundle, cores(), passages, fewer, max_loss)
    found = {each.point: each for each in measure(points, index, questions, limit, out)}
    story = [found[point.name] for point in points]
    if as_json:
        typer.echo(json.dumps([each.as_json() for each in story], indent=2))
    else:
        _show(story, compare=story[0])
    _exit(story)


def _advice(
    found: Sequence[PointFigures], chosen: PointFigures | None, wanted: float | None
) -> str:
    """`wanted`: least exact match."""
    if chosen is not None:
        return f"recommended: {_told(chosen)}"
    most, fastest = recommend(found), recommend(found, min_exact_match=wanted or 0.0)
    if most is None:
        return "nothing to recommend: no point has an accuracy and answered most questions"
    if fastest is None:
        return f"no point is so right; the most accurate one is {_told(most)}"
    right = "" if wanted is None else " that is so right"
    return f"no point{right} is within the budget; the fastest one is {_told(fastest)}"


def _told(chosen: PointFigures) -> str:
    exact = percent(chosen.exact_match)
    return f"{chosen.point}: exact match {exact}, p95 {chosen.p95:.0f} ms"


def _show(found: Sequence[PointFigures], compare: PointFigures | None = None) -> None:
    console = Console(highlight=False)
    console.print(report.table(found, console.width, compare))
    for line in report.reasons(found):
        console.print(line, markup=False, soft_wrap=True)


def _exit(found: Sequence[PointFigures]) -> None:
    raise typer.Exit(1 if all(each.failed == each.questions for each in found) else 0)


def milliseconds(text: str, option: str | None = None) -> float:
    """A duration such as 50ms, 0.2s or 50, in milliseconds."""
    for ending, factor in (("ms", 1.0), ("s", 1e3), ("", 1.0)):
        if text.endswith(ending):
            try:
                value = float(text.removesuffix(ending)) * factor
            except ValueError:
                break
            if 0 < value < math.inf:
                return value
            break
    raise typer.BadParameter(
        f"{text} is not a duration such as 50ms or 0.2s", param_hint=option and f"'{option}'"
    )
