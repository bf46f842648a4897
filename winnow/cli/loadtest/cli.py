"""`winnow bench`."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated

import typer

from winnow import signals
from winnow.address import DEFAULT_ADDRESS
from winnow.cli import options
from winnow.cli.access import with_credentials
from winnow.cli.drawing import check_picture_path, draw_after, figure
from winnow.cli.loadtest.loops import LoadResult, LoadRunner
from winnow.cli.output import AsJson, console, print_json, table, to_json
from winnow.client import Credentials
from winnow.convert import answer as convert
from winnow.files.result_files import reserve_files
from winnow.labelled_questions import read_questions
from winnow.v1 import answer_pb2

_COLUMNS = ("load", "answered", "failed", "q/s", "p50 ms", "p90", "p95", "p99", "max")


@with_credentials
def bench(
    questions: Annotated[
        Path, typer.Option(help="File of questions: JSON lines with question (.gz, .zst).")
    ],
    address: options.FrontAddress = DEFAULT_ADDRESS,
    clients: Annotated[
        int,
        typer.Option(
            min=0,
            max=1024,
            help="Measure closed loops of 1, 2, 4 … clients, up to this number; 0 for none.",
        ),
    ] = 8,
    rate: Annotated[
        list[float] | None,
        typer.Option(
            min=0.1,
            max=10_000,
            help="Measure an open loop at this rate, in questions/s. May be repeated.",
        ),
    ] = None,
    seconds: Annotated[
        float, typer.Option(min=0.1, max=3600, help="Seconds of each measurement.")
    ] = 10.0,
    warm_up: Annotated[
        int, typer.Option(min=0, max=10_000, help="Questions to ask before measuring.")
    ] = 20,
    passages_to_read: options.PassagesToRead = 10,
    read_scope: options.ReadScopeOption = None,
    max_loss: options.MaxLoss = None,
    timeout: options.Timeout = 10.0,
    cached: Annotated[
        bool,
        typer.Option(
            "--cached", help="Allow cached answers. By default every question reads passages."
        ),
    ] = False,
    as_json: AsJson = False,
    picture: Annotated[
        Path | None, typer.Option("--plot", help="Also draw latency against load (.png, .svg).")
    ] = None,
    credentials: Credentials | None = None,
) -> None:
    """Offer load to a running system, and measure how fast it answers.

    --clients measures closed loops: each client asks when its last question is answered. --rate
    measures an open loop: questions are sent at this rate, whether earlier ones are answered or
    not. Latencies cover answered questions only. Exit code 1 if no question is answered.

    By default the server may stop reading early. --max-loss 0 reads every passage.
    With --json each measurement has the max_loss that was used, or null if no reply reported it.

    Two commands need no running system. `winnow bench classification` measures how much each lever
    speeds up text classification on CPUs. `winnow bench unit-costs` measures the unit costs of this
    machine for `winnow plan`.
    """
    if not clients and not rate:
        raise typer.BadParameter("no load to offer: give --clients or --rate")
    options.check_max_loss(max_loss, read_scope)
    texts = [each.question for each in read_questions(questions)]
    request = answer_pb2.AnswerRequest(
        passages_to_read=passages_to_read,
        max_loss=max_loss,
        read_scope=convert.read_scope_message(read_scope),
        fresh=not cached,
    )
    check_picture_path(picture)
    with reserve_files(picture):
        runner = LoadRunner(
            address, request, timeout=timeout, warm_up=warm_up, credentials=credentials
        )
        loads = signals.run(runner.run(texts, list(client_counts(clients)), rate or [], seconds))
        with draw_after(picture, lambda path: _plot(loads, path)):
            if as_json:
                print_json([{**to_json(load), "max_loss": runner.max_loss} for load in loads])
            else:
                _show(loads, runner.max_loss)
    raise typer.Exit(0 if any(load.answered for load in loads) else 1)


def client_counts(maximum: int) -> Iterator[int]:
    """Yields 1, 2, 4 … below `maximum`, then `maximum`; nothing for 0."""
    count = 1
    while count < maximum:
        yield count
        count *= 2
    if maximum:
        yield maximum


def _show(loads: Sequence[LoadResult], max_loss: float | None) -> None:
    rows = []
    for load in loads:
        unit = "clients" if load.kind == "closed" else "q/s offered"
        errors = ", ".join(f"{count} {code}" for code, count in load.errors.items())
        times = (load.p50_ms, load.p90_ms, load.p95_ms, load.p99_ms, load.max_ms)
        counts = (str(load.answered), errors or "0", f"{load.per_second:.1f}")
        rows.append((f"{load.offered:g} {unit}", *counts, *(f"{time:.1f}" for time in times)))
    console().print(table(_COLUMNS, rows))
    if max_loss:
        typer.echo(f"reading may have stopped early (max_loss {max_loss:g})")
    for line in dict.fromkeys(line for load in loads for line in load.said.values()):
        typer.echo(f"failed: {line}")


def _plot(loads: Sequence[LoadResult], path: Path) -> None:
    """Draws p50, p95 and p99 against questions per second.

    Raises WinnowError if the file cannot be written.
    """
    with figure(path, figsize=(7, 4.5), layout="constrained") as axes:
        rates = [load.per_second for load in loads]
        for name, style in (("p50_ms", "-o"), ("p95_ms", "--o"), ("p99_ms", ":o")):
            times = [getattr(load, name) for load in loads]
            axes.plot(rates, times, style, label=name.removesuffix("_ms"))
        for load in loads:
            axes.annotate(
                f"{load.offered:g} {'clients' if load.kind == 'closed' else '/s offered'}",
                (load.per_second, load.p50_ms),
                fontsize=7,
                xytext=(4, -9),
                textcoords="offset points",
            )
        axes.set(xlabel="questions answered per second", ylabel="latency, ms", ylim=(0, None))
        axes.grid(alpha=0.3)
        axes.legend()
