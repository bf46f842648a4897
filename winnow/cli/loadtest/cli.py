"""`winnow bench`."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from winnow import signals
from winnow.cli.access import with_credentials
from winnow.cli.addresses import DEFAULT_ADDRESS, FrontAddress
from winnow.cli.drawing import check_drawable
from winnow.cli.loadtest.loops import LoadResult
from winnow.cli.loadtest.plot import plot
from winnow.cli.loadtest.run import Runner
from winnow.cli.outputs import reserved
from winnow.cli.questions import read_questions
from winnow.cli.stopping import MaxLoss, check_max_loss
from winnow.client import Credentials
from winnow.convert import answer as convert
from winnow.domain.question import ReadScope
from winnow.v1 import answer_pb2


@with_credentials
def bench(
    questions: Annotated[Path, typer.Option(help="JSON lines with question (.gz, .zst).")],
    address: FrontAddress = DEFAULT_ADDRESS,
    clients: Annotated[
        int,
        typer.Option(
            min=0, max=1024, help="Measure with 1, 2, 4 … clients, up to this number; 0 for none."
        ),
    ] = 8,
    rate: Annotated[
        list[float] | None,
        typer.Option(
            min=0.1,
            max=10_000,
            help="Measure at this rate, in questions/s. May be repeated.",
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=0.1, max=3600, help="Seconds of each measurement.")
    ] = 10.0,
    warm_up: Annotated[
        int, typer.Option(min=0, max=10_000, help="Questions to ask before measuring.")
    ] = 20,
    passages_to_read: Annotated[
        int, typer.Option(min=1, max=100, help="Passages to read for each question.")
    ] = 10,
    read_scope: Annotated[
        ReadScope | None,
        typer.Option(
            case_sensitive=False,
            help="Read the best passages of the whole cluster, or of each shard.",
            show_default="the server's",
        ),
    ] = None,
    max_loss: MaxLoss = None,
    timeout: Annotated[
        float,
        typer.Option(min=0.001, max=3600, help="Seconds until a question is given up."),
    ] = 10.0,
    cached: Annotated[
        bool,
        typer.Option(
            "--cached", help="Take answers that are known from before; else all are read anew."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    picture: Annotated[
        Path | None, typer.Option("--plot", help="Also draw latency against load (.png, .svg).")
    ] = None,
    credentials: Credentials | None = None,
) -> None:
    """Offer load to a running system and say how fast it answers.

    --clients measures in closed loops: each client asks when its last question is answered. --rate
    measures in an open loop: questions come at that rate, answered or not. Latencies are of
    answered questions. Exit code 1 if no question is answered.

    Reading stops early as far as the server does by default: --max-loss 0 reads every passage.
    With --json each measurement says which max_loss was used, null if no reply told.

    `winnow bench ladder` needs no running system: it measures what each lever of classifying text
    on CPUs is worth.
    """
    if not clients and not rate:
        raise typer.BadParameter("no load to offer: give --clients or --rate")
    check_max_loss(max_loss, read_scope)
    asked = [each.question for each in read_questions(questions)]
    request = answer_pb2.AnswerRequest(
        passages_to_read=passages_to_read,
        max_loss=max_loss,
        read_scope=convert.read_scope_message(read_scope),
        fresh=not cached,
    )
    check_drawable(picture)
    with reserved(picture):
        runner = Runner(address, request, timeout, warm_up, credentials)
        loads = signals.run(runner.run(asked, list(steps(clients)), rate or [], seconds))
        try:
            if as_json:
                rows = [load.as_json() | {"max_loss": runner.max_loss} for load in loads]
                typer.echo(json.dumps(rows, indent=2))
            else:
                _show(loads, runner.max_loss)
        finally:  # also if nobody reads what is shown
            if picture is not None:
                plot(loads, picture)
                typer.echo(f"drawn: {picture}", err=True)
    raise typer.Exit(0 if any(load.answered for load in loads) else 1)


def steps(most: int) -> Iterator[int]:
    """1, 2, 4 … up to `most`, and `most` itself."""
    step = 1
    while step < most:
        yield step
        step *= 2
    if most:
        yield most


def _show(loads: list[LoadResult], max_loss: float | None) -> None:
    names = ("load", "answered", "failed", "q/s", "p50 ms", "p90", "p95", "p99", "max")
    table = Table(*names)
    for load in loads:
        unit = "clients" if load.kind == "closed" else "q/s offered"
        errors = ", ".join(f"{count} {code}" for code, count in load.errors.items())
        marks = (load.p50_ms, load.p90_ms, load.p95_ms, load.p99_ms, load.max_ms)
        table.add_row(
            f"{load.offered:g} {unit}", str(load.answered), errors or "0",
            f"{load.per_second:.1f}", *(f"{mark:.1f}" for mark in marks),
        )  # fmt: skip
    console = Console(highlight=False)
    console.print(table)
    if max_loss:
        console.print(f"reading may have stopped early (max_loss {max_loss:g})")
    for line in dict.fromkeys(line for load in loads for line in load.said.values()):
        console.print(f"failed: {line}", markup=False, soft_wrap=True)
