"""Shows unit costs as tables."""

from collections.abc import Iterator

from rich.table import Table

from winnow.cli.output import table
from winnow.quoting import many
from winnow.sizing.serving import ServingUnits
from winnow.sizing.units import UnitCosts


def tables(units: UnitCosts) -> Iterator[Table]:
    """Yields a table of model runs, one of shards, and one of processes."""
    title = f"{units.processor}; {many(units.cores, 'core')}; {units.bundle}"
    runs = [("encode a question", each) for each in units.encode.question]
    runs.append(("encode a passage", units.encode.passage))
    runs += [("read a passage", each) for each in units.node.read]
    if states := units.node.states:
        runs += [("read a passage with states", each) for each in states.read]
        runs.append(("a question's lower layers", states.question))
        runs.append(("precompute states", states.compute))
    rows = ((name, str(cost.tokens), f"{cost.ms:.2f}") for name, cost in runs)
    yield table(("model run", "tokens", "ms of a core"), rows, title=title)
    yield _shards(units)
    front, process = units.front, units.process
    yield table(
        ("event loops", "cost"),
        [
            ("front, for a question", f"{front.question_ms:.2f} ms"),
            ("front, for each shard", f"{front.shard_ms:.3f} ms"),
            ("front, for each pair of shards", f"{front.pair_us:.3f} us"),
            ("front, for each shard that reads", f"{front.read_ms:.3f} ms"),
            ("node, for a call", f"{process.call_ms:.3f} ms"),
            ("memory of a node without passages", f"{process.node_bytes / 1e6:.0f} MB"),
            ("memory of a front", f"{process.front_bytes / 1e6:.0f} MB"),
        ],
    )
    if units.serving is not None:
        yield _serving(units.serving)


def speeds(units: ServingUnits) -> str:
    """Says how fast cores are together, and for how long a machine stays faster or slower."""
    drift = units.drift
    return (
        f"speed of a core while all read: {units.together:.2f} of its speed alone; correlation of "
        f"equal reads: {drift.correlation:.2f}, which falls to 1/e in {drift.seconds:.1f} s"
    )


def _serving(units: ServingUnits) -> Table:
    front, node = units.front, units.node
    rows = [
        ("front, for a question", units.question_ms),
        ("front, for a call that retrieves", front.call_ms),
        ("front, for each further shard of a call", front.shard_ms),
        ("front, for a call that reads", front.read_ms),
        ("node, for a call that retrieves", node.call_ms),
        ("node, for each further shard of a call", node.shard_ms),
        ("node, for a call that reads", node.read_ms),
        ("encode a question", units.encode.ms),
        *((f"retrieve from {each.passages:,} passages", each.cost.ms) for each in units.retrieve),
        ("read a passage of 100 words", units.read.ms),
        ("client, for a question", units.client_ms),
        ("a message between processes, waiting", units.message_ms),
        ("work that is handed to a thread, waiting", units.handover_ms),
    ]
    serving = [(name, f"{ms:.3f}") for name, ms in rows]
    return table(("while serving", "ms"), serving, title=speeds(units))


def _shards(units: UnitCosts) -> Table:
    shards = {(each.passages, each.dimension): each for each in units.node.shards}
    rows = []
    for graph in units.node.graphs:
        shard = shards.get((graph.passages, graph.dimension))
        times = (shard.hybrid_ms, shard.dense_ms, shard.sparse_ms) if shard else ()
        sizes = (shard.memory_bytes_each, shard.disk_bytes_each) if shard else ()
        rows.append(
            (
                f"{graph.passages:,}",
                str(graph.dimension),
                f"{graph.search_ms:.2f}",
                *([f"{ms:.2f}" for ms in times] or ["", "", ""]),
                f"{graph.bytes_each:,.0f}",
                *(f"{size:,.0f}" for size in sizes),
            )
        )
    times_of = ("graph ms", "hybrid ms", "dense ms", "sparse ms")
    sizes_of = ("graph bytes", "other memory", "other disk")
    return table(("passages", "dimension", *times_of, *sizes_of), rows)
