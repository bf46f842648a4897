"""`winnow top`."""

import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Annotated

import typer
from google.protobuf.json_format import MessageToDict
from rich.console import Console
from rich.live import Live

from winnow.address import DEFAULT_ADDRESS, Address
from winnow.cli.access import with_credentials
from winnow.cli.options import NamedIndex
from winnow.cli.output import console, print_json
from winnow.cli.top.figures import IntervalFigures, interval_figures
from winnow.cli.top.polling import ClusterPoller, ClusterSample
from winnow.cli.top.render import render_screen
from winnow.client import Credentials
from winnow.errors import WinnowError

_MIN_PIPE_WIDTH = 160
"""Minimum width of output that is not a terminal, in columns."""


def _check_address(address: str) -> str:
    try:
        Address.parse(address)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from error
    return address


@with_credentials
def top(
    address: Annotated[
        str, typer.Option(help="HOST:PORT of one front node.", callback=_check_address)
    ] = DEFAULT_ADDRESS,
    on: NamedIndex = "",
    metrics: Annotated[
        list[str] | None,
        typer.Option(
            help="HOST:PORT of the metrics of a process (its --metrics-listen). Give it once for "
            "each process. A front node adds latencies, coverage and cache hits. A content node "
            "adds times of calls and busy readers. Each process adds its cores and memory.",
            show_default="none",
            callback=lambda addresses: list(map(_check_address, addresses or [])),
        ),
    ] = None,
    every: Annotated[
        float, typer.Option(min=0.1, max=86_400, help="Seconds between two samples.")
    ] = 1.0,
    once: Annotated[
        bool, typer.Option("--once", help="Print the figures of one interval, and exit.")
    ] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print a line of JSON for each sample.")
    ] = False,
    timeout: Annotated[
        float, typer.Option(min=0.001, max=3600, help="Seconds that a sample may take.")
    ] = 2.0,
    credentials: Credentials | None = None,
) -> None:
    """Show a running cluster: shards, replicas, questions per second, work in progress.

    Example: winnow top --metrics 127.0.0.1:9100

    One front node is polled, and only its own calls are counted. Latencies come from the addresses
    of --metrics. Rates and latencies cover the time since the last sample. Ctrl-C ends the command.
    If the front node requires keys, the key needs the scope admin.

    With --json, each line has the keys:
      at: the time, as ISO 8601,
      cluster: as GET /v1/cluster gives it (64-bit numbers are strings),
      figures:
        questions, refused (each per second),
        coverage, dimmed, remembered (each a share, 0 to 1),
        stages (name, p50, p95, p99, in seconds),
        processes (address, part, shards, ready, calls, queue_p95, call_p95, busy, cores, memory,
        fault).

    Exit codes:
      0 Ctrl-C ended the command, or --once has printed
      1 the front node does not reply
      2 wrong usage
    """
    out = console()
    if not out.is_terminal:
        out.width = max(out.width, _MIN_PIPE_WIDTH)
    with ClusterPoller(address, metrics or [], timeout, credentials, index=on) as poller:
        first = poller.poll()
        samples = _samples(first, poller.poll, every)
        if once:
            _print(out, *next(samples), as_json)
            return
        try:
            if as_json or not out.is_terminal or out.is_dumb_terminal:
                for sample, figures in samples:
                    _print(out, sample, figures, as_json)
            else:
                _live(out, first, poller.poll, every)
        except KeyboardInterrupt:
            return


def _samples(
    first: ClusterSample, poll: Callable[[], ClusterSample], every: float
) -> Iterator[tuple[ClusterSample, IntervalFigures]]:
    """Yields samples, each with the figures since the last one.

    Raises WinnowError if the front node does not reply.
    """
    before = first
    while True:
        time.sleep(every)
        now = poll()
        yield now, interval_figures(before, now)
        before = now


def _live(
    out: Console, first: ClusterSample, poll: Callable[[], ClusterSample], every: float
) -> None:
    """Shows samples until Ctrl-C. After a failed poll it shows the error, and polls again."""
    before, current, fault = first, interval_figures(None, first), ""
    with Live(console=out, screen=True, auto_refresh=False) as live:
        while True:
            live.update(render_screen(before.cluster, current, out.height, fault), refresh=True)
            time.sleep(every)
            try:
                now = poll()
            except WinnowError as error:
                fault = f"trying again: {error}"
                continue
            before, current, fault = now, interval_figures(before, now), ""


def _print(out: Console, sample: ClusterSample, figures: IntervalFigures, as_json: bool) -> None:
    if as_json:
        cluster = MessageToDict(sample.cluster, always_print_fields_with_no_presence=True)
        now = datetime.now(UTC).isoformat(timespec="milliseconds")
        print_json({"at": now, "cluster": cluster, "figures": figures}, indent=None)
    else:
        out.print(render_screen(sample.cluster, figures))
    sys.stdout.flush()
