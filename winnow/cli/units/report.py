"""Shows unit costs as tables."""

from collections.abc import Iterator

from rich.table import Table

from winnow.cli.output import table
from winnow.quoting import many
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
