"""`winnow plan`."""

import json
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from winnow.cli.plan.planning import ClusterPlan, driver, soonest
from winnow.cli.plan.planning import plan as planned
from winnow.cli.plan.report import lines
from winnow.cli.plan.wanted import ALL_READ, Wanted
from winnow.cli.quantities import count, milliseconds, size
from winnow.errors import WinnowError
from winnow.sizing.units import Units, read_units, shipped


def plan(
    passages: Annotated[
        str, typer.Option(metavar="NUMBER", help="Passages of the index, such as 21e6.")
    ],
    qps: Annotated[
        float, typer.Option(min=0.001, max=1e6, help="Questions a second at the busiest time.")
    ],
    dimension: Annotated[
        int, typer.Option(min=16, max=8192, help="Values of a passage's vector.")
    ] = 384,
    p99: Annotated[
        str,
        typer.Option(
            metavar="TIME",
            help="Time in which 99 of 100 questions are answered, such as 300ms.",
        ),
    ] = "300ms",
    passages_to_read: Annotated[
        int,
        typer.Option(
            min=1,
            max=100,
            help="Passages read for a question, on average: all that may be read, or the mean of "
            "a front that stops early (--max-loss), as by default.",
        ),
    ] = ALL_READ,
    tokens: Annotated[
        int,
        typer.Option(
            min=16, max=512, help="Tokens of question and passage; 100 words are about 170."
        ),
    ] = 170,
    node_memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Memory of a content node, such as 16GiB.")
    ] = "16GiB",
    node_cores: Annotated[int, typer.Option(min=1, max=1024, help="Cores of a content node.")] = 4,
    replicas: Annotated[
        int, typer.Option(min=1, max=16, help="Content nodes for each shard, at least.")
    ] = 1,
    fronts: Annotated[int, typer.Option(min=1, max=1024, help="Front nodes, at least.")] = 1,
    busy: Annotated[
        float,
        typer.Option(min=0.05, max=0.95, help="Share of the time that cores may be busy, 0 to 1."),
    ] = 0.5,
    states: Annotated[
        bool,
        typer.Option(
            "--states",
            help="The index has states (`winnow index build --states`): less to read, more disk.",
        ),
    ] = False,
    fed: Annotated[
        bool, typer.Option("--fed", help="Passages come and go: merging takes memory, too.")
    ] = False,
    units: Annotated[
        Path | None,
        typer.Option(
            help="Unit costs of your hardware, written by `winnow bench units --out`.",
            show_default="those that were measured for docs/sizing.md",
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Say which machines an index needs: nodes, memory, cores and disk, and what drives the cost.

    Example: winnow plan --passages 21e6 --dimension 768 --qps 100 --p99 300ms

    Reckoned from unit costs; docs/sizing.md has the formulae. Exit code 1 if no number of nodes
    answers in time.
    """
    costs = shipped() if units is None else read_units(units)
    wanted = Wanted(
        passages=count("--passages", passages),
        dimension=dimension,
        qps=qps,
        p99_ms=milliseconds("--p99", p99),
        passages_to_read=passages_to_read,
        tokens=tokens,
        node_cores=node_cores,
        node_bytes=size("--node-memory", node_memory),
        replicas=replicas,
        fronts=fronts,
        busy=busy,
        states=states,
        fed=fed,
    )
    made = _planned(costs, wanted)
    if as_json:
        typer.echo(json.dumps({**asdict(made), "nodes": made.nodes}, indent=2))
        return
    for line in lines(costs, wanted, made, driver(made, wanted)):
        typer.echo(line)


def _planned(units: Units, wanted: Wanted) -> ClusterPlan:
    try:
        if made := planned(units, wanted):
            return made
        best = soonest(units, wanted)
    except ValueError as error:
        raise WinnowError(str(error)) from error
    raise WinnowError(
        f"no number of nodes answers in {wanted.p99_ms:g} ms: {best.nodes} would take "
        f"{best.p99_ms:.0f} ms; read fewer passages, or give each node more cores"
    )
