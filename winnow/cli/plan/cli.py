"""`winnow plan`."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from winnow.cli.output import AsJson, print_json, to_json
from winnow.cli.plan.planning import (
    DEFAULT_PASSAGES,
    ClusterPlan,
    PlanRequest,
    explain_nodes,
    fastest_plan,
    smallest_plan,
)
from winnow.cli.quantities import parse_bytes, parse_count, parse_milliseconds
from winnow.errors import WinnowError
from winnow.quoting import many
from winnow.sizing.units import UnitCosts, read_unit_costs, shipped_unit_costs

_GIB = 2**30


def plan(
    passages: Annotated[
        str, typer.Option(metavar="NUMBER", help="Passages of the index, such as 21e6.")
    ],
    qps: Annotated[
        float, typer.Option(min=0.001, max=1e6, help="Questions per second at the busiest time.")
    ],
    dimension: Annotated[
        int, typer.Option(min=16, max=8192, help="Dimension of passage vectors.")
    ] = 384,
    p99: Annotated[
        str,
        typer.Option(
            metavar="TIME", help="Time in which 99 of 100 questions are answered, such as 300ms."
        ),
    ] = "300ms",
    passages_to_read: Annotated[
        int,
        typer.Option(
            min=1,
            max=100,
            help="Mean number of passages read for a question. Early stopping (--max-loss), the "
            "default of front nodes, lowers this mean.",
        ),
    ] = DEFAULT_PASSAGES,
    tokens: Annotated[
        int,
        typer.Option(
            min=16,
            max=512,
            help="Tokens of question and passage together: about 170 for a passage of 100 words.",
        ),
    ] = 170,
    node_memory: Annotated[
        str, typer.Option(metavar="SIZE", help="Memory of a content node, such as 16GiB.")
    ] = "16GiB",
    node_cores: Annotated[int, typer.Option(min=1, max=1024, help="Cores of a content node.")] = 4,
    replicas: Annotated[
        int, typer.Option(min=1, max=16, help="Minimum number of content nodes for each shard.")
    ] = 1,
    fronts: Annotated[
        int, typer.Option(min=1, max=1024, help="Minimum number of front nodes.")
    ] = 1,
    busy: Annotated[
        float,
        typer.Option(min=0.05, max=0.95, help="Maximum utilisation of the cores, 0 to 1."),
    ] = 0.5,
    states: Annotated[
        bool,
        typer.Option(
            "--states", help="The index has precomputed states (`winnow index build --states`)."
        ),
    ] = False,
    fed: Annotated[
        bool, typer.Option("--fed", help="The index takes writes, so merging needs memory, too.")
    ] = False,
    units: Annotated[
        Path | None,
        typer.Option(
            help="Unit costs of your hardware, written by `winnow bench unit-costs --out`.",
            show_default="those of docs/sizing.md",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Plan the machines of an index: nodes, memory, cores, disk, and the limiting resource.

    Example: winnow plan --passages 21e6 --dimension 768 --qps 100 --p99 300ms

    The plan is an estimate from unit costs; docs/sizing.md has the formulae. Exit code 1 if no
    number of nodes answers in time.
    """
    costs = shipped_unit_costs() if units is None else read_unit_costs(units)
    request = PlanRequest(
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
        max_utilisation=busy,
        states=states,
        fed=fed,
    )
    planned = _plan(costs, request)
    if as_json:
        print_json({**to_json(planned), "nodes": planned.nodes})
        return
    for line in _plan_lines(costs, request, planned):
        typer.echo(line)


def _plan(units: UnitCosts, request: PlanRequest) -> ClusterPlan:
    try:
        if planned := smallest_plan(units, request):
            return planned
        best = fastest_plan(units, request)
    except ValueError as error:
        raise WinnowError(str(error)) from error
    raise WinnowError(
        f"no number of nodes answers in {request.p99_ms:g} ms: the fastest plan, {best.nodes} "
        f"nodes, takes {best.p99_ms:.0f} ms; read fewer passages, or give each node more cores"
    )


def _plan_lines(units: UnitCosts, request: PlanRequest, planned: ClusterPlan) -> Iterator[str]:
    """Describes the plan: machines, latency, load, the reason for the nodes, and the units."""
    costs = planned.served
    yield (
        f"content nodes  {planned.nodes}: {many(planned.shards, 'shard')} x {planned.replicas}, "
        f"each with {many(request.node_cores, 'core')}, {planned.memory_bytes / _GIB:.1f} GiB of "
        f"memory in use and {planned.disk_bytes / _GIB:.0f} GiB of disk, half of it for merges"
    )
    front_gib = units.process.front_bytes * 2 / _GIB
    yield f"front nodes    {planned.fronts}, each with 2 cores and {front_gib:.1f} GiB"
    yield f"latency        p50 {planned.p50_ms:.0f} ms without load, p99 {planned.p99_ms:.0f} ms"
    yield f"load           cores of content nodes are busy for {planned.busy:.0%} of the time"
    yield f"driven by      {explain_nodes(planned, request)}"
    yield (
        f"a question     {planned.node_ms:.0f} ms of the nodes' cores: "
        f"{costs.passages * costs.read:.0f} to read {many(costs.passages, 'passage')}, "
        f"{costs.shards * costs.retrieve:.0f} to retrieve; {costs.front:.1f} ms of a front's "
        "event loop"
    )
    if request.passages_to_read == DEFAULT_PASSAGES:
        yield (
            "stopping       not included: by default a front stops early, and reads 2 to 3 of 10 "
            "passages; plan with that mean by --passages-to-read"
        )
    yield (
        "token vectors  not included: late interaction takes 4 to 5 KB of disk a passage, and 1 to "
        "2 ms to retrieve from a shard"
    )
    if units.node.states is not None and not request.states:
        yield "states         none: --states reads faster, and takes more disk"
    yield (
        f"building       {planned.build_hours:,.1f} hours on one such node; a node loads its shard "
        f"in {planned.load_minutes:.1f} minutes"
    )
    if planned.replicas == 1:
        yield "spare          none: if a node is lost, so are its shards; --replicas 2 adds a spare"
    yield (
        f"estimated from {units.processor}, bundle {units.bundle}; measure your machine with "
        "winnow bench unit-costs"
    )
