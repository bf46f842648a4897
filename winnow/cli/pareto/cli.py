"""`winnow pareto`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from winnow.cli.output import AsJson, console, print_json
from winnow.cli.pareto import report
from winnow.cli.pareto.figures import PointFigures, recommend
from winnow.cli.pareto.point import OperatingPoint, grid_points, lever_points, untuned_deployment
from winnow.cli.pareto.run import measure_points
from winnow.cli.quantities import parse_milliseconds
from winnow.domain.question import Retriever
from winnow.inference.options import Runtime
from winnow.packaged import default_bundle
from winnow.settings.common import cores
from winnow.settings.values import parse_bundle_directory

app = typer.Typer(no_args_is_help=True, help="Measure accuracy against latency.")

_UNTUNED_PASSAGES = 10
"""Number of passages that the untuned baseline reads."""
_Index = Annotated[Path, typer.Option(help="Directory of the index to ask.")]
_Files = Annotated[
    list[Path],
    typer.Option(help="JSON lines with question and answers (.gz, .zst). May be repeated."),
]
_Out = Annotated[
    Path,
    typer.Option(
        help="Directory of results. Name the same directory again to resume an interrupted run."
    ),
]
_Limit = Annotated[int, typer.Option(min=1, help="Questions to ask from each file, evenly spread.")]


@app.command("run")
def run_(
    index: _Index,
    questions: _Files,
    bundle: Annotated[
        list[Path] | None,
        typer.Option(
            parser=parse_bundle_directory,
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
            help="Accuracy budget for early stopping, in points of exact match; 0 disables it. "
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
    untuned: Annotated[
        Path | None,
        typer.Option(
            "--untuned",
            parser=parse_bundle_directory,
            metavar="BUNDLE",
            help="Bundle of an untuned baseline to compare with: one reader thread per node, "
            "padded inputs, dense retrieval, ten passages read. "
            "Only every tenth question is asked of it.",
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
    as_json: AsJson = False,
) -> None:
    """Ask every combination the same questions in turn, and draw accuracy against latency.

    Every bundle must have the passage encoder that built the index. Ctrl-C is safe: run the command
    again to resume. Writes points.csv, points.json and pareto.png to --out. A failed question
    counts as wrong, and the next run asks it again. Exit code 1 if every question fails.
    """
    budget = None if max_p95 is None else parse_milliseconds("--max-p95", max_p95)
    points = grid_points(
        bundle or [default_bundle()],
        [each.value for each in runtime or [Runtime.AUTO]],
        retriever or [Retriever.HYBRID],
        passages=passages or [1, 2, 5, 10, 20],
        losses=max_loss or [0.0, 0.3],
    )
    if untuned is not None:
        points.insert(
            0,
            OperatingPoint(
                untuned_deployment(untuned),
                _UNTUNED_PASSAGES,
                retriever=Retriever.DENSE,
                brief=True,
            ),
        )
    results = measure_points(points, index, questions, limit, out)
    chosen = recommend(results, budget, min_exact_match)
    if as_json:
        print_json({"points": results, "recommended": chosen and chosen.point})
    else:
        _show(results)
        typer.echo(_advice(results, chosen, min_exact_match))
    _exit(results)


@app.command("levers")
def levers_(
    index: _Index,
    questions: _Files,
    bundle: Annotated[
        list[Path],
        typer.Option(
            parser=parse_bundle_directory,
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
            help="Accuracy budget for early stopping in the last step, in points of exact match. "
            "The other steps read every passage.",
        ),
    ] = 1.0,
    out: _Out = Path("levers"),
    limit: _Limit = 60,
    as_json: AsJson = False,
) -> None:
    """Tune an untuned service one change at a time, and show the effect of each.

    Exit code 1 if every question fails.
    """
    points = lever_points(
        bundle, threads=cores(), passages=passages, fewer=fewer, max_loss=max_loss
    )
    by_name = {each.point: each for each in measure_points(points, index, questions, limit, out)}
    results = [by_name[point.name] for point in points]
    if as_json:
        print_json(results)
    else:
        _show(results, compare=results[0])
    _exit(results)


def _advice(
    results: Sequence[PointFigures], chosen: PointFigures | None, min_exact_match: float | None
) -> str:
    """Names the recommended point; if there is none, says why, and names the closest point."""
    if chosen is not None:
        return f"recommended: {_summarize(chosen)}"
    best, fastest = recommend(results), recommend(results, min_exact_match=min_exact_match or 0.0)
    if best is None:
        return "nothing to recommend: no point has a known accuracy and answered most questions"
    if fastest is None:
        return f"no point reaches --min-exact-match; the most accurate one is {_summarize(best)}"
    accurate = "" if min_exact_match is None else " that reaches --min-exact-match"
    return f"no point{accurate} is within --max-p95; the fastest one is {_summarize(fastest)}"


def _summarize(point: PointFigures) -> str:
    exact = report.format_percent(point.exact_match)
    return f"{point.point}: exact match {exact}, p95 {point.p95:.0f} ms"


def _show(results: Sequence[PointFigures], compare: PointFigures | None = None) -> None:
    out = console()
    out.print(report.table(results, out.width, compare))
    for line in report.failure_lines(results):
        typer.echo(line)


def _exit(results: Sequence[PointFigures]) -> None:
    raise typer.Exit(1 if all(each.failed == each.questions for each in results) else 0)
