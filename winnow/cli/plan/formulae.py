"""The formulae of docs/sizing.md: what an index needs, from unit costs. Pure.

Milliseconds are core time, and bytes are of one node, unless a name says otherwise.
"""

import math
from collections.abc import Sequence

from winnow.sizing.units import SPREAD_QUANTILES, LengthCost, ShardCost, StatesUnits, Units

FLOAT_BYTES = 4
QUESTION = 12
"""Tokens of a question."""


def by_length(costs: Sequence[LengthCost], tokens: float) -> float:
    """Milliseconds of a run over `tokens` tokens, by linear inter- and extrapolation."""
    known = sorted(costs, key=lambda cost: cost.tokens)
    after = next((place for place, cost in enumerate(known) if cost.tokens >= tokens), len(known))
    low, high = known[max(min(after, len(known) - 1) - 1, 0) :][:2]
    slope = (high.ms - low.ms) / (high.tokens - low.tokens)
    return max(low.ms + slope * (tokens - low.tokens), min(known[0].ms, low.ms) / 2)


def search_ms(units: Units, passages: float, dimension: int) -> float:
    """Time to search the graph of a shard. It grows with the logarithm of the passages (Malkov and
    Yashunin 2016, section 4.2.2), and with the dimension as measured.
    """
    usual = units.node.shards[0].dimension
    known = sorted((g.passages, g.search_ms) for g in units.node.graphs if g.dimension == usual)
    (few, fast), (many, slow) = known[0], known[-1]
    growth = (slow - fast) / math.log(many / few) if many > few else 0.0
    at_size = max(slow + growth * math.log(max(passages, 1.0) / many), fast / 2)
    return at_size * _by_dimension(units, usual, dimension)


def retrieve_ms(units: Units, passages: float, dimension: int) -> float:
    """Time to retrieve from a shard by vectors and words: the graph search, and a constant rest."""
    shard = _largest(units)
    beside = shard.hybrid_ms - search_ms(units, shard.passages, shard.dimension)
    return search_ms(units, passages, dimension) + max(beside, 0.0)


def _by_dimension(units: Units, usual: int, dimension: int) -> float:
    """The factor of a graph search over vectors of another dimension, as measured at one size."""
    if dimension == usual:
        return 1.0
    sizes = [g for g in units.node.graphs if g.dimension != usual]
    same = {(g.passages, g.dimension): g.search_ms for g in units.node.graphs}
    for other in sizes:
        if (first := same.get((other.passages, usual))) is not None:
            slope = (other.search_ms / first - 1) / (other.dimension - usual)
            return max(1 + slope * (dimension - usual), 0.1)
    return dimension / usual


def node_bytes_each(units: Units, dimension: int) -> float:
    """Memory of a passage: its vector, its links, and the rest that a node holds of it."""
    return _graph_bytes_each(units, dimension) + _largest(units).memory_bytes_each


def disk_bytes_each(units: Units, dimension: int) -> float:
    """Disk of a passage: its part of the graph, and a row with its text and its vector."""
    shard = _largest(units)
    more = (dimension - shard.dimension) * FLOAT_BYTES
    return _graph_bytes_each(units, dimension) + shard.disk_bytes_each + more


def states_bytes_each(units: Units, tokens: float) -> float:
    """Disk of a passage's precomputed states; `tokens` counts passage and question."""
    return _states(units).bytes_a_token * (tokens - QUESTION)


def build_ms_each(units: Units) -> float:
    """Core time to encode a passage and to write it into a shard."""
    return units.encode.passage.ms + _largest(units).write_ms_each


def states_ms_each(units: Units, tokens: float) -> float:
    """Core time to precompute a passage's states."""
    compute = _states(units).compute
    return compute.ms * (tokens - QUESTION) / compute.tokens


def load_ms_each(units: Units) -> float:
    """Time of a node that starts, for each passage of its shard."""
    return _largest(units).load_ms_each


def _graph_bytes_each(units: Units, dimension: int) -> float:
    graph = min(units.node.graphs, key=lambda each: abs(each.dimension - dimension))
    return graph.bytes_each + (dimension - graph.dimension) * FLOAT_BYTES


def _largest(units: Units) -> ShardCost:
    return max(units.node.shards, key=lambda each: each.passages)


def distinct(passages: int, shards: int) -> float:
    """Mean number of shards that read, if each passage is on a random shard."""
    return shards * (1 - (1 - 1 / shards) ** passages)


def busiest(passages: int, shards: int, share: float) -> int:
    """Passages that no shard exceeds for `share` of the questions.

    It is the least number for which fewer than `1 - share` shards read more, on average.
    """
    part, beyond = 1 / shards, 1.0
    for most in range(passages + 1):
        beyond -= math.comb(passages, most) * part**most * (1 - part) ** (passages - most)
        if shards * beyond <= 1 - share and most * shards >= passages:
            return most
    return passages


def read_ms(units: Units, tokens: float, *, states: bool = False) -> float:
    """Time to read a passage while all cores read, with or without precomputed states."""
    costs = _states(units) if states else units.node
    return by_length(costs.read, tokens) / costs.together


def half_ms(units: Units) -> float:
    """Time for the lower layers of a question, on each shard that reads; 0 for a full
    cross-encoder.
    """
    return units.node.states.question.ms if units.node.states else 0.0


def _states(units: Units) -> StatesUnits:
    if units.node.states is None:
        raise ValueError(
            "these unit costs have no states: leave out --states, or measure them again with "
            "`winnow bench units --out FILE`"
        )
    return units.node.states


def front_ms(units: Units, shards: int, passages: int) -> float:
    """Time of a front node's event loop for a question; encoding runs in other threads."""
    front = units.front
    asking = front.shard_ms * shards + front.pair_us / 1e3 * shards**2
    return front.question_ms + asking + front.read_ms * distinct(passages, shards)


def node_ms(units: Units, shards: int, retrieve: float, read: float, passages: int) -> float:
    """Core time of all shards for a question."""
    reading = distinct(passages, shards)
    calls = (shards + reading) * units.process.call_ms
    return shards * retrieve + passages * read + reading * half_ms(units) + calls


def slow(spread: Sequence[float]) -> float:
    """The 99th percentile of a spread, relative to the median."""
    return spread[SPREAD_QUANTILES.index(0.99)]


def waiting_ms(service_ms: float, servers: int, busy: float, share: float) -> float:
    """The waiting time for a server that only `share` of the customers exceed: M/M/c (Erlang 1917).

    Args:
        service_ms: mean time of service.
        servers: number of servers.
        busy: share of the time that a server works, below 1.
        share: for example 0.01 for the 99th percentile.

    """
    offered, lost = servers * busy, 1.0
    for number in range(1, servers + 1):  # a recursion: the sums would exceed floating point
        lost *= offered / (number + offered * lost)
    waits = lost / (1 - busy * (1 - lost))
    return service_ms / (servers * (1 - busy)) * math.log(max(waits / share, 1.0))
