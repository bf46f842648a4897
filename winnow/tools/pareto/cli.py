"""`winnow pareto`."""

import asyncio
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from winnow.bundle import default_bundle
from winnow.domain.question import Retriever
from winnow.inference.runtime import Runtime
from winnow.settings.common import cores
from winnow.tools.pareto import levers, report
from winnow.tools.pareto.figures import Figures, figures, recommend
from winnow.tools.pareto.plot import plot
from winnow.tools.pareto.point import Point, grid, megabytes, untrained
from winnow.tools.pareto.report import percent
from winnow.tools.pareto.run import Questions, run
from winnow.tools.questions import AskedQuestion, read_questions

app = typer.Typer(no_args_is_help=True, help="Accuracy against latency, measured in one run.")

_DEFAULT = default_bundle()
_Index = Annotated[Path, typer.Option(help="The index to ask.")]
_Files = Annotated[list[Path], typer.Option(help="JSON lines with question and answers.")]
_Out = Annotated[Path, typer.Option(help="Directory of results; the same one goes on.")]
_Limit = Annotated[int, typer.Option(min=1, help="Questions of each file, evenly spread.")]
_Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]


@app.command("run")
def run_(
    index: _Index,
    questions: _Files,
    bundle: Annotated[
        list[Path] | None, typer.Option(help="A bundle to compare.", show_default="the default one")
    ] = None,
    passages: Annotated[
        list[int] | None,
        typer.Option(min=1, max=100, help="Passages to read.", show_default="1 2 5 10 20"),
    ] = None,
    max_loss: Annotated[
        list[float] | None,
        typer.Option(min=0, help="Loss to promise in stopping early.", show_default="0 0.3"),
    ] = None,
    retriever: Annotated[
        list[Retriever] | None,
        typer.Option(help="Retriever to compare.", show_default="hybrid"),
    ] = None,
    runtime: Annotated[
        list[Runtime] | None, typer.Option(help="Runtime to compare.", show_default="auto")
    ] = None,
    out: _Out = Path("pareto"),
    limit: _Limit = 300,
    max_p95: Annotated[
        str | None, typer.Option(help="Recommend within a latency, such as 50ms or 0.2s.")
    ] = None,
    min_exact_match: Annotated[
        float | None, typer.Option(help="Recommend the fastest with at least this exact match.")
    ] = None,
    as_json: _Json = False,
) -> None:
    """Ask every combination the same questions, in turn, and draw accuracy against latency.

    Every bundle must encode passages as the index was encoded. Ctrl-C loses nothing: the same
    command goes on. Writes points.csv, points.json and pareto.png to --out.
    """
    budget = None if max_p95 is None else milliseconds(max_p95)
    points = grid(
        bundle or [_DEFAULT],
        [each.value for each in runtime or [Runtime.AUTO]],
        retriever or [Retriever.HYBRID],
        passages or [1, 2, 5, 10, 20],
        max_loss or [0.0, 0.3],
    )
    found = _measure(points, index, questions, limit, out)
    chosen = recommend(found, budget, min_exact_match)
    if as_json:
        rows = [each.as_json() for each in found]
        typer.echo(json.dumps({"points": rows, "recommended": chosen and chosen.point}, indent=2))
        return
    console = Console(highlight=False)
    console.print(report.table(found))
    if chosen is None:
        console.print("no point is within the budget; the fastest one is "
                      f"{min(found, key=lambda each: each.p95).point}")  # fmt: skip
    else:
        console.print(
            f"recommended: {chosen.point}: exact match {percent(chosen.exact_match)}, "
            f"p95 {chosen.p95:.0f} ms"
        )


@app.command("levers")
def levers_(
    index: _Index,
    questions: _Files,
    bundle: Annotated[
        list[Path],
        typer.Option(
            help="The bundles of the story, in order: untuned in float32, in int8, smaller ones."
        ),
    ],
    passages: Annotated[int, typer.Option(min=1, max=100, help="Passages to read.")] = 10,
    fewer: Annotated[
        int, typer.Option(min=1, max=100, help="Passages to read once words help to find them.")
    ] = 5,
    max_loss: Annotated[
        float, typer.Option(min=0, help="Loss to promise in stopping early, as the last step.")
    ] = 1.0,
    out: _Out = Path("levers"),
    limit: _Limit = 60,
    as_json: _Json = False,
) -> None:
    """From an untuned service to ours, one lever at a time: what each bought."""
    points = levers.steps(bundle, cores(), passages, fewer, max_loss)
    found = {each.point: each for each in _measure(points, index, questions, limit, out)}
    story = [found[point.name] for point in points]
    if as_json:
        typer.echo(json.dumps([each.as_json() for each in story], indent=2))
    else:
        Console(highlight=False).print(report.table(story, compare=story[0]))


def milliseconds(text: str) -> float:
    """A duration such as 50ms, 0.2s or 50, in milliseconds."""
    for ending, factor in (("ms", 1.0), ("s", 1e3), ("", 1.0)):
        if text.endswith(ending):
            try:
                return float(text.removesuffix(ending)) * factor
            except ValueError:
                break
    raise typer.BadParameter(f"{text} is not a duration such as 50ms or 0.2s")


def _measure(
    points: Sequence[Point], index: Path, files: Sequence[Path], limit: int, out: Path
) -> list[Figures]:
    out.mkdir(parents=True, exist_ok=True)
    sets = [Questions(path.name.split(".")[0], _spread(path, limit)) for path in files]
    total = len(points) * sum(len(each.asked) for each in sets)
    columns = (
        TextColumn("asking"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn(),
        TextColumn("left"), TimeRemainingColumn(),
    )  # fmt: skip
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total)
        outcomes = asyncio.run(
            run(points, sets, index, out / "outcomes.jsonl", lambda n: bar.advance(task, n))
        )
    wanted = {point.name for point in points}
    sizes = {point.name: megabytes(point.deployment.bundle) for point in points}
    found = figures((each for each in outcomes if each.point in wanted), sizes, untrained(points))
    report.write(found, out)
    plot(found, out / "pareto.png")
    return found


def _spread(path: Path, limit: int) -> list[AskedQuestion]:
    asked = read_questions(path)
    return asked[:: max(len(asked) // limit, 1)][:limit]
