"""Unit costs as tables."""

from collections.abc import Iterator

from rich.table import Table

from winnow.quoting import many
from winnow.sizing.units import Units


def tables(units: Units) -> Iterator[Table]:
    """One for models, one for shards, one for processes."""
    title = f"{units.processor}; {many(units.cores, 'core')}; {units.bundle}"
    yield _models(units, title)
    yield _shards(units)
    yield _processes(units)


def _models(units: Units, title: str) -> Table:
    table = Table("model run", "tokens", "ms of a core", title=title, title_justify="left")
    for each in units.encode.question:
        table.add_row("encode a question", str(each.tokens), f"{each.ms:.2f}")
    passage = units.encode.passage
    table.add_row("encode a passage", str(passage.tokens), f"{passage.ms:.2f}")
    for each in units.node.read:
        table.add_row("read a passage", str(each.tokens), f"{each.ms:.2f}")
    if states := units.node.states:
        for each in states.read:
            table.add_row("the same with states", str(each.tokens), f"{each.ms:.2f}")
        asked = states.question
        table.add_row("a question's own half", str(asked.tokens), f"{asked.ms:.2f}")
        table.add_row("compute states", str(states.compute.tokens), f"{states.compute.ms:.2f}")
    return table


def _shards(units: Units) -> Table:
    names = ("passages", "dimension", "graph ms", "hybrid ms", "dense ms", "sparse ms")
    table = Table(*names, "graph bytes", "other memory", "other disk")
    whole = {(each.passages, each.dimension): each for each in units.node.shards}
    for graph in units.node.graphs:
        row = [f"{graph.passages:,}", str(graph.dimension), f"{graph.search_ms:.2f}"]
        shard = whole.get((graph.passages, graph.dimension))
        times = (shard.hybrid_ms, shard.dense_ms, shard.sparse_ms) if shard else ()
        row += [f"{ms:.2f}" for ms in times] or ["", "", ""]
        row.append(f"{graph.bytes_each:,.0f}")
        sizes = (shard.memory_bytes_each, shard.disk_bytes_each) if shard else ()
        table.add_row(*row, *(f"{size:,.0f}" for size in sizes))
    return table


def _processes(units: Units) -> Table:
    front, process = units.front, units.process
    table = Table("event loops", "cost")
    table.add_row("front, for a question", f"{front.question_ms:.2f} ms")
    table.add_row("front, for each shard", f"{front.shard_ms:.3f} ms")
    table.add_row("front, for each pair of shards", f"{front.pair_us:.3f} us")
    table.add_row("front, for each shard that reads", f"{front.read_ms:.3f} ms")
    table.add_row("node, for a call", f"{process.call_ms:.3f} ms")
    table.add_row("memory of a node without passages", f"{process.node_bytes / 1e6:.0f} MB")
    table.add_row("memory of a front", f"{process.front_bytes / 1e6:.0f} MB")
    return table
