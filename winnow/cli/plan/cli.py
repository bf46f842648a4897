"""`winnow plan`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from winnow.cli.output import AsJson, print_json, to_json
from winnow.cli.plan.planning import ALL_READ, ClusterPlan, PlanRequest, driver, soonest
from winnow.cli.plan.planning import plan as planned
from winnow.cli.quantities import parse_bytes, parse_count, parse_milliseconds
from winnow.errors import WinnowError
from winnow.quoting import many
from winnow.sizing.units import Units, read_units, shipped_units

_GIB = 2**30


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
            help="Mean of the passages read for a question. It is smaller where a front node stops "
            "early (--max-loss), as by default.",
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
            help="The index has precomputed states (`winnow index build --states`).",
        ),
    ] = False,
    fed: Annotated[
        bool, typer.Option("--fed", help="Passages are fed and deleted: merging takes memory, too.")
    ] = False,
    units: Annotated[
        Path | None,
        typer.Option(
            help="Unit costs of your hardware, written by `winnow bench units --out`.",
            show_default="those of docs/sizing.md",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Plan the machines that an index needs: nodes, memory, cores and disk, and what drives them.

    Example: winnow plan --passages 21e6 --dimension 768 --qps 100 --p99 300ms

    The plan is an estimate from unit costs; docs/sizing.md has the formulae. Exit code 1 if no
    number of nodes answers in time.
    """
    costs = shipped_units() if units is None else read_units(units)
    wanted = PlanRequest(
        passages=parse_count("--passages", passages),
        dimension=dimension,
        qps=qps,
        p99_ms=parse_milliseconds("--p99", p99),
        passages_to_read=passages_to_read,
        tokens=tokens,
        node_cores=node_cores,
        node_bytes=parse_bytes("--node-memory", node_memory),
        replicas=replicas,
        fronts=fronts,
        busy=busy,
        states=states,
        fed=fed,
    )
    made = _planned(costs, wanted)
    if as_json:
        print_json({**to_json(made), "nodes": made.nodes})
        return
    for line in _lines(costs, wanted, made):
        typer.echo(line)


def _planned(units: Units, wanted: PlanRequest) -> ClusterPlan:
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


def _lines(units: Units, wanted: PlanRequest, made: ClusterPlan) -> Iterator[str]:
    """The plan in words: needs, latency, the reason for the number of nodes, and its basis."""
    served = made.served
    yield (
        f"content nodes  {made.nodes}: {many(made.shards, 'shard')} x {made.replicas}, each with "
        f"{many(wanted.node_cores, 'core')}, {made.memory_bytes / _GIB:.1f} GiB of memory in use "
        f"and {made.disk_bytes / _GIB:.0f} GiB of disk, half of it for merges"
    )
    front_gib = units.process.front_bytes * 2 / _GIB
    yield f"front nodes    {made.fronts}, each with 2 cores and {front_gib:.1f} GiB"
    yield f"latency        p50 {made.p50_ms:.0f} ms without load, p99 {made.p99_ms:.0f} ms"
    yield f"load           cores of content nodes are busy for {made.busy:.0%} of the time"
    yield f"driven by      {driver(made, wanted)}"
    yield (
        f"a question     {made.node_ms:.0f} ms of the nodes' cores: "
        f"{served.passages * served.read:.0f} to read {many(served.passages, 'passage')}, "
        f"{served.shards * served.retrieve:.0f} to retrieve; {served.front:.1f} ms of a front's "
        "event loop"
    )
    if wanted.passages_to_read == ALL_READ:
        yield (
            "stopping       not included: by default a front stops early and reads 3 to 5 of 10; "
            "--passages-to-read takes the mean"
        )
    if units.node.states is not None and not wanted.states:
        yield "states         none: --states reads faster, and takes more disk"
    yield (
        f"building       {made.build_hours:,.1f} hours on one such node; a node loads its shard in "
        f"{made.load_minutes:.1f} minutes"
    )
    if made.replicas == 1:
        yield "spare          none: a lost node is a lost shard; --replicas 2 has one"
    yield f"estimated from {units.processor}, bundle {units.bundle}; yours: winnow bench units"
