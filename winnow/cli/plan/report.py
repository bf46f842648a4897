"""A plan in words."""

from collections.abc import Iterator

from winnow.cli.plan.planning import ClusterPlan
from winnow.cli.plan.wanted import ALL_READ, Wanted
from winnow.quoting import many
from winnow.sizing.units import Units

_GIB = 2**30


def lines(units: Units, wanted: Wanted, made: ClusterPlan, driver: str) -> Iterator[str]:
    """What is needed, how fast it is, what drives it, and what it was reckoned from."""
    served, cores = made.served, wanted.node_cores
    passages = many(served.passages, "passage")
    yield (
        f"content nodes  {made.nodes}: {many(made.shards, 'shard')} x {made.replicas}, each with "
        f"{many(cores, 'core')}, {made.memory_bytes / _GIB:.1f} GiB of memory in use and "
        f"{made.disk_bytes / _GIB:.0f} GiB of disk, half of it for merges"
    )
    yield (
        f"front nodes    {made.fronts}, each with 2 cores and "
        f"{units.process.front_bytes * 2 / _GIB:.1f} GiB"
    )
    yield f"latency        p50 {made.p50_ms:.0f} ms without load, p99 {made.p99_ms:.0f} ms"
    yield f"load           cores of content nodes are busy for {made.busy:.0%} of the time"
    yield f"driven by      {driver}"
    yield (
        f"a question     {made.node_ms:.0f} ms of the nodes' cores: "
        f"{served.passages * served.read:.0f} to read {passages}, "
        f"{served.shards * served.retrieve:.0f} to retrieve; {served.front:.1f} ms of a front's "
        "event loop"
    )
    if wanted.passages_to_read == ALL_READ:
        yield (
            "stopping       not reckoned: by default a front stops early and reads 3 to 5 of 10, "
            "by the questions; --passages-to-read takes the mean"
        )
    if units.node.states is not None and not wanted.states:
        yield "states         none: with them there is less to read, and more disk: --states"
    yield (
        f"building       {made.build_hours:,.1f} hours on one such node; a node loads its shard in "
        f"{made.load_minutes:.1f} minutes"
    )
    if made.replicas == 1:
        yield "spare          none: a lost node is a lost shard; --replicas 2 has one"
    yield f"reckoned from  {units.processor}, bundle {units.bundle}; yours: winnow bench units"
