"""`winnow top`."""

import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Annotated

import typer
from google.protobuf.json_format import MessageToDict
from rich.console import Console
from rich.live import Live

from winnow.address import Address
from winnow.cli.access import with_credentials
from winnow.cli.options import DEFAULT_ADDRESS
from winnow.cli.top.asking import FrontPoller
from winnow.cli.top.figures import IntervalFigures, figures
from winnow.cli.top.look import Look
from winnow.cli.top.render import screen
from winnow.client import Credentials
from winnow.errors import WinnowError

_PIPE = 160
"""Columns where there is no terminal that is narrower."""

Seen = tuple[Look, IntervalFigures]


def _checked(addresses: list[str]) -> list[str]:
    for address in addresses:
        _one(address)
    return addresses


def _one(address: str) -> str:
    try:
        Address.parse(address)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    return address


@with_credentials
def top(
    address: Annotated[
        str, typer.Option(help="HOST:PORT of one front node.", callback=_one)
    ] = DEFAULT_ADDRESS,
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            help="HOST:PORT of the metrics of a process (its --metrics-listen). Give it once for "
            "each. A front's add latencies of answers and stages, coverage, and what is "
            "remembered; a node's how long calls wait and take, and how busy its readers are; "
            "every process's its cores and memory.",
            show_default="none",
            callback=lambda found: _checked(found or []),
        ),
    ] = None,
    every: Annotated[
        float, typer.Option(min=0.1, max=86_400, help="Seconds between two looks.")
    ] = 1.0,
    once: Annotated[
        bool, typer.Option("--once", help="Print what there is after two looks, and end.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a line of JSON for each look.")
    ] = False,
    timeout: Annotated[
        float, typer.Option(min=0.001, max=3600, help="Seconds that a look may take.")
    ] = 2.0,
    credentials: Credentials | None = None,
) -> None:
    """Show a running cluster: shards, replicas, questions a second, what is in hand.

    Example: winnow top --metrics 127.0.0.1:9100

    One front node is asked, which asks no other node for it. Counts of calls are that front's
    alone. It tells no latencies: those come from metrics (--metrics). Rates and latencies are
    those since the look before. End it with Ctrl-C. Where keys are asked for, it takes one with
    the scope admin.

    With --json, each line has the keys:
      at: the time, as ISO 8601,
      cluster: as GET /v1/cluster gives it (64-bit numbers are strings),
      figures: questions, refused (a second), coverage, dimmed, remembered (shares),
        stages (name, p50, p95, p99, in seconds),
        processes (address, part, shards, ready, calls, queue_p95, call_p95, busy, cores, memory,
        fault).

    Exit codes:
      0 it was ended by Ctrl-C, or --once has printed
      1 the front does not reply
      2 wrong usage
    """
    console = Console(highlight=False)
    if not console.is_terminal:
        console.width = max(console.width, _PIPE)
    with FrontPoller(address, metrics or [], timeout, credentials) as asking:
        first = asking.look()
        seen = _seen(first, asking.look, every)
        if once:
            _print(console, next(seen), as_json)
            return
        try:
            if as_json or not console.is_terminal or console.is_dumb_terminal:
                for each in seen:
                    _print(console, each, as_json)
            else:
                _live(console, first, asking.look, every)
        except KeyboardInterrupt:
            return  # which is how it is ended


def _seen(first: Look, look: Callable[[], Look], every: float) -> Iterator[Seen]:
    """Looks, each with what it tells beside the one before; raises WinnowError."""
    before = first
    while True:
        time.sleep(every)
        now = look()
        yield now, figures(before, now)
        before = now


def _live(console: Console, first: Look, look: Callable[[], Look], every: float) -> None:
    """Shows looks until it is interrupted. One that fails is said, and tried again."""
    before, shown, fault = first, figures(None, first), ""
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(screen(before.cluster, shown, console.height, fault), refresh=True)
            time.sleep(every)
            try:
                now = look()
            except WinnowError as error:
                fault = f"trying again: {error}"
                continue
            before, shown, fault = now, figures(before, now), ""


def _print(console: Console, seen: Seen, as_json: bool) -> None:
    look, found = seen
    if as_json:
        typer.echo(json.dumps(_as_dict(look, found)))
    else:
        console.print(screen(look.cluster, found))
    sys.stdout.flush()


def _as_dict(look: Look, found: IntervalFigures) -> dict[str, object]:
    cluster = MessageToDict(look.cluster, always_print_fields_with_no_presence=True)
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    return {"at": now, "cluster": cluster, "figures": asdict(found)}
