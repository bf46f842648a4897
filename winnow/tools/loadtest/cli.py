"""`winnow bench`."""

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from winnow.client.messages import AnswerClient
from winnow.convert import answer as convert
from winnow.domain.question import ReadScope
from winnow.tools.loadtest.loops import Load, closed_loop, open_loop
from winnow.tools.loadtest.plot import plot
from winnow.tools.questions import read_questions
from winnow.v1 import answer_pb2


def bench(
    questions: Annotated[Path, typer.Option(help="JSON lines with question; asked in turn.")],
    address: Annotated[str, typer.Option(help="HOST:PORT of a front node.")] = "127.0.0.1:8080",
    clients: Annotated[
        int, typer.Option(min=0, max=1024, help="Closed loops of 1, 2, 4 … so many clients.")
    ] = 8,
    rate: Annotated[
        list[float] | None, typer.Option(min=0.1, help="Open loop at so many questions a second.")
    ] = None,
    seconds: Annotated[float, typer.Option(min=0.1, max=3600, help="Length of each loop.")] = 10.0,
    warm_up: Annotated[int, typer.Option(min=0, help="Questions asked before measuring.")] = 20,
    passages_to_read: Annotated[int, typer.Option(min=1, max=100, help="Passages read.")] = 10,
    read_scope: Annotated[
        ReadScope | None, typer.Option(help="Scope.", show_default="the server's")
    ] = None,
    timeout: Annotated[float, typer.Option(min=0.001, help="Seconds a question may take.")] = 10.0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
    picture: Annotated[
        Path | None, typer.Option("--plot", help="Also draw latency against load (.png, .svg).")
    ] = None,
) -> None:
    """Offer load to a running system and say how fast it answers.

    Closed loops show what it can do; open loops what users feel at a given rate.
    """
    asked = [each.question for each in read_questions(questions)]
    request = answer_pb2.AnswerRequest(
        passages_to_read=passages_to_read, read_scope=convert.read_scope_message(read_scope)
    )
    console = Console(stderr=True, highlight=False)
    runner = _Runner(address, request, timeout, warm_up, console)
    loads = asyncio.run(runner.run(asked, list(steps(clients)), rate or [], seconds))
    if as_json:
        typer.echo(json.dumps([load.as_json() for load in loads], indent=2))
    else:
        _show(loads)
    if picture is not None:
        plot(loads, picture)
        console.print(f"drawn: {picture}")


def steps(most: int) -> Iterator[int]:
    """1, 2, 4 … up to `most`, and `most` itself."""
    step = 1
    while step < most:
        yield step
        step *= 2
    if most:
        yield most


class _Runner:
    """Offers one load after the other."""

    def __init__(
        self,
        address: str,
        request: answer_pb2.AnswerRequest,
        timeout: float,
        warm_up: int,
        console: Console,
    ) -> None:
        self._address, self._request, self._timeout = address, request, timeout
        self._warm_up, self._console = warm_up, console

    async def run(
        self, questions: list[str], clients: list[int], rates: list[float], seconds: float
    ) -> list[Load]:
        async with AnswerClient(self._address) as client:
            await client.expect_serving()

            async def ask(question: str) -> object:
                request = answer_pb2.AnswerRequest()
                request.CopyFrom(self._request)
                request.question = question[:1000]
                return await client.ask(request, self._timeout)

            for place in range(self._warm_up):
                await ask(questions[place % len(questions)])
            loads = []
            with self._console.status("") as status:
                for count in clients:
                    status.update(f"closed loop, {count} clients, {seconds:g} s")
                    loads.append(await closed_loop(ask, questions, count, seconds))
                for rate in rates:
                    status.update(f"open loop, {rate:g} questions/s, {seconds:g} s")
                    loads.append(await open_loop(ask, questions, rate, seconds))
            return loads


def _show(loads: list[Load]) -> None:
    names = ("load", "answered", "errors", "q/s", "p50 ms", "p90", "p95", "p99", "max")
    table = Table(*names)
    for load in loads:
        unit = "clients" if load.kind == "closed" else "q/s offered"
        errors = ", ".join(f"{count} {code}" for code, count in load.errors.items())
        marks = (load.p50_ms, load.p90_ms, load.p95_ms, load.p99_ms, load.max_ms)
        table.add_row(
            f"{load.offered:g} {unit}", str(load.answered), errors or "0",
            f"{load.per_second:.1f}", *(f"{mark:.1f}" for mark in marks),
        )  # fmt: skip
    Console(highlight=False).print(table)
