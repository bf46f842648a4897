"""What docs/sizing.md shows, as tables in Markdown."""

import itertools
from collections.abc import Iterator, Sequence

from bench.simulation.tails import Point
from winnow.cli.plan.formulae import front_ms
from winnow.cli.plan.planning import driver, plan
from winnow.cli.plan.report import lines
from winnow.cli.plan.wanted import Wanted
from winnow.sizing.units import Units

EXAMPLE = Wanted(passages=21e6, dimension=768, qps=100, p99_ms=300)
"""What `winnow plan --passages 21e6 --dimension 768 --qps 100 --p99 300ms` plans for."""
_SHARDS = (1, 8, 32, 64, 128, 256, 1_000)
_READ = 10
_WANTED_MS, _RETRIEVING_MS = 300, 800


def units_table(units: Units) -> Iterator[str]:
    """The unit costs."""
    yield f"{units.processor}; {units.cores} cores; bundle {units.bundle}."
    yield ""
    yield "| what | by | cost |"
    yield "|---|---|---|"
    for each in units.encode.question:
        yield f"| encode a question | {each.tokens} tokens | {each.ms:.2f} ms |"
    passage = units.encode.passage
    yield f"| encode a passage, all cores at work | {passage.tokens} tokens | {passage.ms:.2f} ms |"
    for each in units.node.read:
        yield f"| read a passage | {each.tokens} tokens | {each.ms:.2f} ms |"
    if states := units.node.states:
        for each in states.read:
            yield f"| the same with states | {each.tokens} tokens | {each.ms:.2f} ms |"
        asked, made = states.question, states.compute
        yield f"| a question's own half, once a node | {asked.tokens} tokens | {asked.ms:.2f} ms |"
        yield f"| compute states, all cores at work | {made.tokens} tokens | {made.ms:.2f} ms |"
    yield f"| speed of a core while all read | | {units.node.together:.2f} of its speed alone |"
    for graph in units.node.graphs:
        by = f"{graph.passages:,} passages, {graph.dimension} values"
        yield f"| find the hundred nearest | {by} | {graph.search_ms:.2f} ms |"
        yield f"| a vector and its links | {by} | {graph.bytes_each:,.0f} bytes |"
    for shard in units.node.shards:
        by = f"{shard.passages:,} passages"
        times = f"{shard.hybrid_ms:.2f}, {shard.dense_ms:.2f}, {shard.sparse_ms:.2f} ms"
        yield f"| retrieve: hybrid, dense, sparse | {by} | {times} |"
        sizes = f"{shard.memory_bytes_each:,.0f}, {shard.disk_bytes_each:,.0f} bytes"
        yield f"| a passage beside its graph: memory, disk | {by} | {sizes} |"
        times = f"{shard.write_ms_each:.2f}, {shard.load_ms_each:.4f} ms each"
        yield f"| write a shard, load it | {by} | {times} |"
    yield from _loops(units)


def _loops(units: Units) -> Iterator[str]:
    front, process = units.front, units.process
    yield f"| event loop of a front | a question | {front.question_ms:.2f} ms |"
    yield f"| | a shard | {front.shard_ms:.3f} ms |"
    yield f"| | a pair of shards | {front.pair_us:.2f} µs |"
    yield f"| | a shard that reads | {front.read_ms:.3f} ms |"
    yield f"| event loop of a node | a call | {process.call_ms:.2f} ms |"
    memory = f"{process.node_bytes / 1e6:.0f}, {process.front_bytes / 1e6:.0f} MB"
    yield f"| memory of a node without passages, of a front | | {memory} |"


def fronts_table(units: Units) -> Iterator[str]:
    """What a front can ask."""
    yield "| shards | event loop, ms a question | questions/s of a front, at most |"
    yield "|---|---|---|"
    for shards in _SHARDS:
        spent = front_ms(units, shards, _READ)
        yield f"| {shards:,} | {spent:.1f} | {1e3 / spent:.1f} |"
    tenth, share = (_most_shards(units, ms) for ms in (_WANTED_MS / 10, _RETRIEVING_MS))
    yield ""
    yield (
        f"It takes a tenth of {_WANTED_MS} ms at {tenth} shards. At {share} it takes longer than "
        f"retrieval may ({_RETRIEVING_MS} ms, 40 % of a front's usual deadline)."
    )


def _most_shards(units: Units, ms: float) -> int:
    """Shards that a front can ask for a question in so much time of its event loop."""
    return next(n for n in itertools.count(1) if front_ms(units, n + 1, _READ) > ms)


def tails_table(points: Sequence[Point]) -> Iterator[str]:
    """What was simulated."""
    yield "| picture | course | shards | p50 ms | p99 ms | shards in time | hedges/calls |"
    yield "|---|---|---|---|---|---|---|"
    for each in points:
        yield (
            f"| {each.course.picture} | {each.course.name} | {each.shards:,} | {each.p50:.0f} | "
            f"{each.p99:.0f} | {each.coverage:.1%} | {each.hedged:.1%} |"
        )


def plan_text(units: Units) -> Iterator[str]:
    """The example's plan."""
    made = plan(units, EXAMPLE)
    if made is None:
        yield "no number of nodes is in time"
        return
    yield "```text"
    yield from lines(units, EXAMPLE, made, driver(made, EXAMPLE))
    yield "```"
