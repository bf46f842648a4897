"""`winnow bench classification`."""

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from winnow.cli.drawing import check_picture_path, draw_after, figure
from winnow.cli.ladder.making import create_missing_models, models_directory
from winnow.cli.ladder.run import LadderPlan, StepResult, measure_steps
from winnow.cli.ladder.steps import ROBLOX_NOTE, STEPS
from winnow.cli.ladder.texts import read_texts
from winnow.cli.output import AsJson, console, print_json, table
from winnow.files.result_files import reserve_files
from winnow.quoting import many
from winnow.settings.common import cores
from winnow.telemetry.progress import StageProgress

_WIDTH = 124
"""Columns of the table."""
_COLUMNS = ("step", "texts", "p50 ms", "p95", "p99", "predictions/s", "vs first", "vs previous")


def ladder(
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1024,
            help="Number of worker processes with one thread each; a worker takes up to 1 GB of "
            "memory.",
            show_default="the number of cores",
        ),
    ] = None,
    requests: Annotated[
        int,
        typer.Option(
            min=1,
            max=1_000_000,
            help="Number of texts for each worker at each step, in all rounds.",
        ),
    ] = 1_000,
    rounds: Annotated[
        int, typer.Option(min=1, max=100, help="Number of rounds. Each round measures every step.")
    ] = 3,
    seconds: Annotated[
        float,
        typer.Option(
            min=0.1,
            max=3600,
            help="Maximum seconds of a step in a round; slow steps run fewer texts.",
        ),
    ] = 8.0,
    texts: Annotated[
        Path | None,
        typer.Option(
            help="File of texts: JSON lines or CSV with the field `text`.",
            show_default="synthetic, with CLINC150's lengths",
        ),
    ] = None,
    as_json: AsJson = False,
    picture: Annotated[
        Path | None,
        typer.Option(
            "--plot", help="Also draw the speed of each step as a bar chart (.png, .svg)."
        ),
    ] = None,
) -> None:
    """Measure how much each lever speeds up text classification on CPUs.

    The first step is BERT-base in fp32, with every text padded to 128 tokens. The last step is a
    small int8 encoder with a cache, and ten heads on each encoding. Weights are random, which does
    not change the speed. Missing models (1 GB) are created and kept. Texts are tokenised before
    measuring. No server is needed.
    """
    check_picture_path(picture)
    plan = LadderPlan(
        steps=STEPS,
        workers=workers or cores(),
        requests=requests,
        rounds=rounds,
        seconds=seconds,
        texts=read_texts(texts) if texts is not None else (),
    )
    with reserve_files(picture), StageProgress() as progress:
        create_missing_models(models_directory(), STEPS, progress.say)
        step_results = measure_steps(plan, models_directory(), progress)
    with draw_after(picture, lambda path: plot(step_results, path)):
        if as_json:
            print_json(step_results)
        else:
            _show(step_results, plan)


def _show(step_results: Sequence[StepResult], plan: LadderPlan) -> None:
    rows = [
        (
            step.name,
            str(step.requests),
            *(f"{ms:.2f}" for ms in (step.p50_ms, step.p95_ms, step.p99_ms)),
            f"{step.rate:.1f} ({min(step.rates):.1f}-{max(step.rates):.1f})",
            f"{step.times_first:.1f}",
            f"{step.times_before:.2f}",
        )
        for step in step_results
    ]
    out = console(soft_wrap=True)
    out.width = max(out.width, _WIDTH)
    out.print(table(_COLUMNS, rows))
    typer.echo(
        f"{many(plan.workers, 'worker')} with one thread each, {many(plan.rounds, 'round')} of all "
        "steps; predictions/s are the median of the rounds (minimum-maximum)"
    )
    for step in step_results:
        if step.hit_rate is not None:
            typer.echo(f"{step.name}: {step.hit_rate:.0%} of the texts were cached")
    typer.echo(ROBLOX_NOTE)


def plot(step_results: Sequence[StepResult], path: Path) -> None:
    """Draws predictions per second, with the spread of the rounds, to `path` (.png or .svg).

    Raises WinnowError if the file cannot be written.
    """
    with figure(path, figsize=(8, 4.5), layout="constrained") as axes:
        rows = range(len(step_results))[::-1]
        rates = [step.rate for step in step_results]
        below = [step.rate - min(step.rates) for step in step_results]
        above = [max(step.rates) - step.rate for step in step_results]
        axes.barh(rows, rates, xerr=[below, above], color="tab:blue", ecolor="0.4", capsize=3)
        axes.set_yticks(rows, [step.name for step in step_results])
        for row, step in zip(rows, step_results, strict=True):
            label = f"  {step.times_first:.1f} times, p50 {step.p50_ms:.1f} ms"
            axes.annotate(label, (max(step.rates), row), fontsize=8, va="center")
        axes.set(xscale="log", xlabel="predictions per second")
        axes.set_xlim(min(rates) / 2, max(rates) * 40)
        axes.grid(axis="x", alpha=0.3)
