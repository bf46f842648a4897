"""Plans the smallest cluster that holds an index, carries its load and answers in time. Pure."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from winnow.cli.plan import formulae
from winnow.cli.plan.latency import QuestionCosts, p50_ms, p99_ms
from winnow.domain.shard import MAX_SHARDS
from winnow.sizing.units import UnitCosts

DEFAULT_PASSAGES = 10
"""Passages that a front node reads by default, without early stopping."""
_USABLE = 0.9
"""Share of a machine's memory for Winnow; the rest is for the system."""
_STEPS, _MAX_FACTOR, _MIN_LIMIT = 8, 4, 64
"""Shard counts to try: from the minimum to `_MAX_FACTOR` times the minimum, but at least to
`_MIN_LIMIT`. The step is the minimum divided by `_STEPS`.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """An index, its load, the required latency, and the machines."""

    passages: float
    dimension: int
    qps: float
    """Questions per second at the busiest time."""
    p99_ms: float
    passages_to_read: int = DEFAULT_PASSAGES
    """Mean number of passages read for a question."""
    tokens: int = 170
    """Tokens of question, title and text together."""
    node_cores: int = 4
    node_bytes: float = 16 * 2**30
    replicas: int = 1
    """Minimum number of replicas of each shard."""
    fronts: int = 1
    """Minimum number of front nodes."""
    max_utilisation: float = 0.5
    """Maximum utilisation of cores, 0 to 1; the rest is for peaks and lost machines."""
    states: bool = False
    """Whether the index has precomputed states."""
    fed: bool = False
    """Whether the index takes writes. If so, a merging node holds two generations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlan:
    """The planned machines and their load. Field names are keys of the JSON."""

    shards: int
    replicas: int
    fronts: int
    served: QuestionCosts
    """The costs of a question in this cluster."""
    node_ms: float
    """Core time of all shards for a question."""
    busy: float
    """Utilisation of the cores of content nodes."""
    p50_ms: float
    p99_ms: float
    memory_bytes: float
    """Memory in use of a content node."""
    disk_bytes: float
    """Disk space of a content node, with room for the next generation."""
    for_memory: int
    """Content nodes needed to hold the index once."""
    for_load: int
    """Content nodes needed to carry the load."""
    build_hours: float
    """Hours to build the index on one node."""
    load_minutes: float
    """Minutes until a starting node serves."""

    @property
    def nodes(self) -> int:
        """Number of content nodes."""
        return self.shards * self.replicas


def smallest_plan(units: UnitCosts, request: PlanRequest) -> ClusterPlan | None:
    """The plan with the fewest nodes that answers in time; None if there is none.

    Raises ValueError if the index needs too many shards.
    """
    in_time = (each for each in _candidates(units, request) if each.p99_ms <= request.p99_ms)
    return min(in_time, key=lambda each: (each.nodes, each.fronts, each.shards), default=None)


def fastest_plan(units: UnitCosts, request: PlanRequest) -> ClusterPlan:
    """The plan with the lowest p99, at any cost. Raises ValueError if `smallest_plan` does."""
    return min(_candidates(units, request), key=lambda each: (each.p99_ms, each.nodes))


def explain_nodes(planned: ClusterPlan, request: PlanRequest) -> str:
    """Explains why the plan has this number of nodes."""
    minimum = max(planned.for_memory * request.replicas, planned.for_load)
    if planned.nodes > minimum * 1.2:
        return "latency: fewer nodes would hold the index and carry the load, but be too slow"
    if planned.for_load > planned.for_memory * request.replicas:
        return "load: reading and retrieving need the cores of that many nodes"
    return "memory: the nodes hold the index, and have cores to spare"


def _candidates(units: UnitCosts, request: PlanRequest) -> Iterator[ClusterPlan]:
    min_shards = _min_shards(units, request)
    max_shards = min(max(_MAX_FACTOR * min_shards, _MIN_LIMIT), MAX_SHARDS)
    for shards in range(min_shards, max_shards + 1, max(min_shards // _STEPS, 1)):
        costs = _question_costs(units, request, shards)
        cores = request.qps * _node_ms(units, costs) / 1e3 / request.max_utilisation
        minimum = max(math.ceil(cores / (request.node_cores * shards)), request.replicas)
        for replicas in (minimum, minimum + 1, 2 * minimum, 4 * minimum):
            yield _plan(units, request, costs, replicas, min_shards)


def _min_shards(units: UnitCosts, request: PlanRequest) -> int:
    """The minimum number of shards that fit into the memory of the nodes."""
    room = request.node_bytes * _USABLE - units.process.node_bytes
    each = formulae.node_bytes_per_passage(units, request.dimension) * (2 if request.fed else 1)
    shards = request.passages * each / room if room > 0 else math.inf
    if shards > MAX_SHARDS:
        raise ValueError(
            f"{request.passages:,.15g} passages do not fit into {MAX_SHARDS:,} nodes of "
            f"{request.node_bytes / 2**30:.3g} GiB: give the nodes more memory"
        )
    return math.ceil(shards)


def _question_costs(units: UnitCosts, request: PlanRequest, shards: int) -> QuestionCosts:
    return QuestionCosts(
        shards=shards,
        passages=request.passages_to_read,
        cores=request.node_cores,
        front=formulae.front_ms(units, shards, request.passages_to_read),
        retrieve=formulae.retrieve_ms(units, request.passages / shards, request.dimension),
        read=formulae.read_ms(units, request.tokens, states=request.states),
    )


def _node_ms(units: UnitCosts, costs: QuestionCosts) -> float:
    return formulae.node_ms(units, costs.shards, costs.retrieve, costs.read, costs.passages)


def _disk_bytes_each(units: UnitCosts, request: PlanRequest) -> float:
    states = formulae.states_bytes_per_passage(units, request.tokens) if request.states else 0.0
    return formulae.disk_bytes_per_passage(units, request.dimension) + states


def _build_ms_per_passage(units: UnitCosts, request: PlanRequest) -> float:
    states = formulae.states_ms_per_passage(units, request.tokens) if request.states else 0.0
    return formulae.build_ms_per_passage(units) + states


def _plan(
    units: UnitCosts, request: PlanRequest, costs: QuestionCosts, replicas: int, min_shards: int
) -> ClusterPlan:
    passages = request.passages / costs.shards
    node_ms = _node_ms(units, costs)
    cores = request.qps * node_ms / 1e3
    busy = cores / (costs.shards * replicas * request.node_cores)
    loops = request.qps * costs.front / 1e3
    fronts = max(math.ceil(loops / request.max_utilisation), request.fronts)
    return ClusterPlan(
        shards=costs.shards,
        replicas=replicas,
        fronts=fronts,
        served=costs,
        node_ms=node_ms,
        busy=busy,
        p50_ms=p50_ms(units, costs),
        p99_ms=p99_ms(units, costs, busy, loops / fronts),
        memory_bytes=passages * formulae.node_bytes_per_passage(units, request.dimension)
        + units.process.node_bytes,
        disk_bytes=2 * passages * _disk_bytes_each(units, request),
        for_memory=min_shards,
        for_load=math.ceil(cores / request.max_utilisation / request.node_cores),
        build_hours=request.passages
        * _build_ms_per_passage(units, request)
        / request.node_cores
        / 3.6e6,
        load_minutes=passages * formulae.load_ms_per_passage(units) / 6e4,
    )
