"""The formulae of docs/sizing.md, which compute time and space from unit costs. Pure.

Milliseconds are core time, and bytes are of one node, unless a docstring says otherwise.
"""

import math
from collections.abc import Sequence

from winnow.sizing.units import SPREAD_QUANTILES, LengthCost, ShardCost, StatesUnits, UnitCosts

FLOAT_BYTES = 4
QUESTION = 12
"""Number of tokens of a typical question."""


def interpolate_ms(costs: Sequence[LengthCost], tokens: float) -> float:
    """Milliseconds of a run over `tokens` tokens, by linear interpolation or extrapolation."""
    by_length = sorted(costs, key=lambda cost: cost.tokens)
    longer = (index for index, cost in enumerate(by_length) if cost.tokens >= tokens)
    after = next(longer, len(by_length))
    low, high = by_length[max(min(after, len(by_length) - 1) - 1, 0) :][:2]
    slope = (high.ms - low.ms) / (high.tokens - low.tokens)
    return max(low.ms + slope * (tokens - low.tokens), min(by_length[0].ms, low.ms) / 2)


def search_ms(units: UnitCosts, passages: float, dimension: int) -> float:
    """Time to search the graph of a shard.

    It grows with the logarithm of the passages (Malkov and Yashunin 2016, section 4.2.2), and with
    the dimension as measured.
    """
    measured = units.node.shards[0].dimension
    graphs = [each for each in units.node.graphs if each.dimension == measured]
    costs = sorted((each.passages, each.search_ms) for each in graphs)
    (few, fast), (many, slow) = costs[0], costs[-1]
    growth = (slow - fast) / math.log(many / few) if many > few else 0.0
    at_size = max(slow + growth * math.log(max(passages, 1.0) / many), fast / 2)
    return at_size * _dimension_factor(units, measured, dimension)


def retrieve_ms(units: UnitCosts, passages: float, dimension: int) -> float:
    """Time to retrieve from a shard by vectors and words: the graph search and a constant."""
    shard = _largest_shard(units)
    constant = shard.hybrid_ms - search_ms(units, shard.passages, shard.dimension)
    return search_ms(units, passages, dimension) + max(constant, 0.0)


def _dimension_factor(units: UnitCosts, measured: int, dimension: int) -> float:
    """Search time in `dimension` dimensions, divided by the time in `measured` dimensions."""
    if dimension == measured:
        return 1.0
    times = {(each.passages, each.dimension): each.search_ms for each in units.node.graphs}
    for other in units.node.graphs:
        if other.dimension != measured and (other.passages, measured) in times:
            factor = other.search_ms / times[other.passages, measured]
            slope = (factor - 1) / (other.dimension - measured)
            return max(1 + slope * (dimension - measured), 0.1)
    return dimension / measured


def node_bytes_per_passage(units: UnitCosts, dimension: int) -> float:
    """Memory of each passage: its vector, its links, and its other data in memory."""
    return _graph_bytes_per_passage(units, dimension) + _largest_shard(units).memory_bytes_each


def disk_bytes_per_passage(units: UnitCosts, dimension: int) -> float:
    """Disk space of each passage: its part of the graph, and a row with text and vector."""
    shard = _largest_shard(units)
    vector = (dimension - shard.dimension) * FLOAT_BYTES
    return _graph_bytes_per_passage(units, dimension) + shard.disk_bytes_each + vector


def states_bytes_per_passage(units: UnitCosts, tokens: float) -> float:
    """Disk space of each passage's precomputed states; `tokens` count the passage
    and the question, but only those of the passage are stored.
    """
    return _states(units).bytes_a_token * (tokens - QUESTION)


def build_ms_per_passage(units: UnitCosts) -> float:
    """Core time to encode each passage and write it to a shard."""
    return units.encode.passage.ms + _largest_shard(units).write_ms_each


def states_ms_per_passage(units: UnitCosts, tokens: float) -> float:
    """Core time to precompute the states of each passage."""
    compute = _states(units).compute
    return compute.ms * (tokens - QUESTION) / compute.tokens


def load_ms_per_passage(units: UnitCosts) -> float:
    """Time to load a shard, divided by its passages."""
    return _largest_shard(units).load_ms_each


def _graph_bytes_per_passage(units: UnitCosts, dimension: int) -> float:
    graph = min(units.node.graphs, key=lambda each: abs(each.dimension - dimension))
    return graph.bytes_each + (dimension - graph.dimension) * FLOAT_BYTES


def _largest_shard(units: UnitCosts) -> ShardCost:
    return max(units.node.shards, key=lambda each: each.passages)


def reading_shards(passages: int, shards: int) -> float:
    """Mean number of shards that read, if each of the passages is on a random shard."""
    return shards * (1 - (1 - 1 / shards) ** passages)


def max_reads_per_shard(passages: int, shards: int, share: float) -> int:
    """The number of reads that no shard exceeds in `share` of the questions.

    It is the smallest number for which fewer than `1 - share` shards read more, on average.
    """
    p, tail = 1 / shards, 1.0  # the binomial distribution of the reads of a shard
    for reads in range(passages + 1):
        tail -= math.comb(passages, reads) * p**reads * (1 - p) ** (passages - reads)
        if shards * tail <= 1 - share and reads * shards >= passages:
            return reads
    return passages


def read_ms(units: UnitCosts, tokens: float, *, states: bool = False) -> float:
    """Time to read a passage while all cores read."""
    costs = _states(units) if states else units.node
    return interpolate_ms(costs.read, tokens) / costs.together


def question_layers_ms(units: UnitCosts) -> float:
    """Time of the lower layers for a question, on each shard that reads.

    0 for a full cross-encoder.
    """
    return units.node.states.question.ms if units.node.states else 0.0


def _states(units: UnitCosts) -> StatesUnits:
    if units.node.states is None:
        raise ValueError(
            "these unit costs have no states: leave out --states, or measure the unit costs again "
            "with `winnow bench unit-costs --out FILE`"
        )
    return units.node.states


def front_ms(units: UnitCosts, shards: int, passages: int) -> float:
    """Time of a front node's event loop for a question, without encoding."""
    front = units.front
    retrieving = front.shard_ms * shards + front.pair_us / 1e3 * shards**2
    return front.question_ms + retrieving + front.read_ms * reading_shards(passages, shards)


def node_ms(units: UnitCosts, shards: int, retrieve: float, read: float, passages: int) -> float:
    """Core time of all shards for a question."""
    readers = reading_shards(passages, shards)
    calls = (shards + readers) * units.process.call_ms
    return shards * retrieve + passages * read + readers * question_layers_ms(units) + calls


def p99_factor(spread: Sequence[float]) -> float:
    """The 99th percentile of a spread, divided by the median."""
    return spread[SPREAD_QUANTILES.index(0.99)]


def waiting_ms(service_ms: float, servers: int, busy: float, share: float) -> float:
    """The time in an M/M/c queue that only `share` of the requests exceed (Erlang 1917).

    Args:
        service_ms: mean service time.
        servers: number of servers.
        busy: utilisation of a server, below 1.
        share: 0.01 for the 99th percentile.

    """
    offered, blocked = servers * busy, 1.0
    for number in range(1, servers + 1):  # Erlang B by recursion: its sums would overflow
        blocked *= offered / (number + offered * blocked)
    queued = blocked / (1 - busy * (1 - blocked))  # Erlang C
    return service_ms / (servers * (1 - busy)) * math.log(max(queued / share, 1.0))
