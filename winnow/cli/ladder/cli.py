"""`winnow bench ladder`."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from winnow.cli.drawing import check_drawable
from winnow.cli.ladder.figures import Rung
from winnow.cli.ladder.making import directory, make_missing
from winnow.cli.ladder.plot import plot
from winnow.cli.ladder.run import LadderPlan, measure
from winnow.cli.ladder.steps import SEED, STEPS
from winnow.cli.ladder.texts import read_texts
from winnow.cli.outputs import reserved
from winnow.quoting import many
from winnow.settings.common import cores
from winnow.telemetry.progress import StageProgress

_WIDTH = 124
"""Columns of the table."""


def ladder(
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=1024,
            help="Worker processes of one thread; each takes up to 1 GB of memory.",
            show_default="cores",
        ),
    ] = None,
    requests: Annotated[
        int, typer.Option(min=1, max=1_000_000, help="Texts for each worker at each step.")
    ] = 1_000,
    rounds: Annotated[
        int, typer.Option(min=1, max=100, help="Times that the whole ladder is climbed.")
    ] = 3,
    seconds: Annotated[
        float,
        typer.Option(
            min=0.1,
            max=3600,
            help="Longest time of a step in a round; slow steps take fewer texts.",
        ),
    ] = 8.0,
    texts: Annotated[
        Path | None,
        typer.Option(
            help="JSON lines or CSV with text.", show_default="made up, as long as CLINC150's"
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    picture: Annotated[
        Path | None, typer.Option("--plot", help="Also draw the ladder (.png, .svg).")
    ] = None,
) -> None:
    """Measure what each lever of classifying text on CPUs is worth.

    From BERT-base in fp32, every text padded to 128 tokens, to ten heads on one encoding of a small
    encoder in int8, and a cache. Weights are random, which changes no speed; models (1 GB) are made
    where they are missing, and kept. Texts are tokenised before. No server is needed.
    """
    check_drawable(picture)
    plan = LadderPlan(
        STEPS,
        workers or cores(),
        requests,
        rounds,
        seconds,
        read_texts(texts) if texts is not None else (),
    )
    with reserved(picture), StageProgress() as progress:
        make_missing(directory(), STEPS, progress.say)
        found = measure(plan, directory(), progress)
    try:
        if as_json:
            typer.echo(json.dumps([rung.as_json() for rung in found], indent=2))
        else:
            _show(found, plan)
    finally:  # also if nobody reads what is shown
        if picture is not None:
            plot(found, picture)
            typer.echo(f"drawn: {picture}", err=True)


def _show(found: Sequence[Rung], plan: LadderPlan) -> None:
    table = Table(
        "step", "texts", "p50 ms", "p95", "p99", "predictions/s", "times first", "times last"
    )
    for rung in found:
        marks = (f"{mark:.2f}" for mark in (rung.p50_ms, rung.p95_ms, rung.p99_ms))
        rate = f"{rung.rate:.1f} ({min(rung.rates):.1f}-{max(rung.rates):.1f})"
        factors = f"{rung.times_first:.1f}", f"{rung.times_before:.2f}"
        table.add_row(rung.name, str(rung.requests), *marks, rate, *factors)
    console = Console(highlight=False, soft_wrap=True)
    console.width = max(console.width, _WIDTH)
    console.print(table)
    workers = many(plan.workers, "worker")
    console.print(
        f"{workers} of one process and thread, {many(plan.rounds, 'round')}, each step in each; "
        "medians, with the least and the most of the rounds"
    )
    for rung in found:
        if rung.hit_rate is not None:
            console.print(f"{rung.name}: {rung.hit_rate:.0%} of the texts were encoded before")
    console.print(SEED)
