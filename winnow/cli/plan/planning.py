"""Plans the fewest machines that hold an index, carry its load and answer in time. Pure."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from winnow.cli.plan import formulae
from winnow.cli.plan.latency import QuestionPath, slowest, usual
from winnow.domain.shard import MOST_SHARDS
from winnow.sizing.units import Units

ALL_READ = 10
"""Passages that a front node reads for a question by default, unless it stops early."""
_USABLE = 0.9
"""Share of a machine's memory for Winnow; the system has the rest."""
_STEPS, _MOST_TIMES, _LEAST = 8, 4, 64
"""Numbers of shards to try: from the fewest to `_MOST_TIMES` as many, or to `_LEAST`, in steps of
the fewest divided by `_STEPS`.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRequest:
    """An index, its load, and the machines that it may have."""

    passages: float
    dimension: int
    qps: float
    """Questions a second at the busiest time."""
    p99_ms: float
    passages_to_read: int = ALL_READ
    """Mean of the passages that are read for a question."""
    tokens: int = 170
    """Tokens of question, title and text together; a passage has 100 words."""
    node_cores: int = 4
    node_bytes: float = 16 * 2**30
    replicas: int = 1
    """Least number of replicas of each shard."""
    fronts: int = 1
    """Least number of front nodes."""
    busy: float = 0.5
    """Share of the time that cores may be busy, 0 to 1; the rest is for peaks and lost machines."""
    states: bool = False
    """Whether the index has precomputed states."""
    fed: bool = False
    """Whether passages are fed and deleted: a node then holds two generations while it merges."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterPlan:
    """Machines, and their load."""

    shards: int
    replicas: int
    fronts: int
    served: QuestionPath
    """The costs of a question in each place."""
    node_ms: float
    """Core time of all shards for a question."""
    busy: float
    """Share of the time that the cores of nodes are busy."""
    p50_ms: float
    p99_ms: float
    memory_bytes: float
    """Memory in use of a content node."""
    disk_bytes: float
    """Disk of a content node, with room for the next generation."""
    for_memory: int
    """Content nodes that hold the index once."""
    for_load: int
    """Content nodes whose cores carry the load."""
    build_hours: float
    """Hours to encode and write the index on one node."""
    load_minutes: float
    """Minutes until a node that starts serves."""

    @property
    def nodes(self) -> int:
        """Content nodes."""
        return self.shards * self.replicas


def plan(units: Units, wanted: PlanRequest) -> ClusterPlan | None:
    """The plan with the fewest nodes that answers in time; None if there is none.

    Raises ValueError if the index needs more shards than an index can have, or a node holds
    nothing.
    """
    in_time = (made for made in _candidates(units, wanted) if made.p99_ms <= wanted.p99_ms)
    return min(in_time, key=lambda made: (made.nodes, made.fronts, made.shards), default=None)


def soonest(units: Units, wanted: PlanRequest) -> ClusterPlan:
    """The plan with the smallest p99, at any cost; raises ValueError as `plan` does."""
    return min(_candidates(units, wanted), key=lambda made: (made.p99_ms, made.nodes))


def driver(made: ClusterPlan, wanted: PlanRequest) -> str:
    """The reason for the number of nodes."""
    least = max(made.for_memory * wanted.replicas, made.for_load)
    if made.nodes > least * 1.2:
        return "latency: fewer nodes would hold the index and carry the load, but be too slow"
    if made.for_load > made.for_memory * wanted.replicas:
        return "load: the nodes have the cores that reading and retrieving take"
    return "memory: the nodes hold the index, and have cores to spare"


def _candidates(units: Units, wanted: PlanRequest) -> Iterator[ClusterPlan]:
    fewest = _fewest_shards(units, wanted)
    most = min(max(_MOST_TIMES * fewest, _LEAST), MOST_SHARDS)
    for shards in range(fewest, most + 1, max(fewest // _STEPS, 1)):
        served = _served(units, wanted, shards)
        cores = wanted.qps * _node_ms(units, served) / 1e3 / wanted.busy
        least = max(math.ceil(cores / (wanted.node_cores * shards)), wanted.replicas)
        for replicas in (least, least + 1, 2 * least, 4 * least):
            yield _plan(units, wanted, served, replicas, fewest)


def _fewest_shards(units: Units, wanted: PlanRequest) -> int:
    """The fewest shards that fit into the memory of the nodes."""
    room = wanted.node_bytes * _USABLE - units.process.node_bytes
    # a node that is fed holds two generations while it merges
    each = formulae.node_bytes_each(units, wanted.dimension) * (2 if wanted.fed else 1)
    shards = wanted.passages * each / room if room > 0 else math.inf
    if shards > MOST_SHARDS:
        raise ValueError(
            f"{wanted.passages:,.15g} passages do not fit into {MOST_SHARDS:,} nodes of "
            f"{wanted.node_bytes / 2**30:.3g} GiB: give the nodes more memory"
        )
    return math.ceil(shards)


def _served(units: Units, wanted: PlanRequest, shards: int) -> QuestionPath:
    return QuestionPath(
        shards=shards,
        passages=wanted.passages_to_read,
        cores=wanted.node_cores,
        front=formulae.front_ms(units, shards, wanted.passages_to_read),
        retrieve=formulae.retrieve_ms(units, wanted.passages / shards, wanted.dimension),
        read=formulae.read_ms(units, wanted.tokens, states=wanted.states),
    )


def _node_ms(units: Units, served: QuestionPath) -> float:
    return formulae.node_ms(units, served.shards, served.retrieve, served.read, served.passages)


def _disk_bytes_each(units: Units, wanted: PlanRequest) -> float:
    states = formulae.states_bytes_each(units, wanted.tokens) if wanted.states else 0.0
    return formulae.disk_bytes_each(units, wanted.dimension) + states


def _build_ms_each(units: Units, wanted: PlanRequest) -> float:
    states = formulae.states_ms_each(units, wanted.tokens) if wanted.states else 0.0
    return formulae.build_ms_each(units) + states


def _plan(
    units: Units, wanted: PlanRequest, served: QuestionPath, replicas: int, fewest: int
) -> ClusterPlan:
    held = wanted.passages / served.shards
    node_ms = _node_ms(units, served)
    cores = wanted.qps * node_ms / 1e3
    busy = cores / (served.shards * replicas * wanted.node_cores)
    loops = wanted.qps * served.front / 1e3
    fronts = max(math.ceil(loops / wanted.busy), wanted.fronts)
    return ClusterPlan(
        shards=served.shards,
        replicas=replicas,
        fronts=fronts,
        served=served,
        node_ms=node_ms,
        busy=busy,
        p50_ms=usual(units, served),
        p99_ms=slowest(units, served, busy, loops / fronts),
        memory_bytes=held * formulae.node_bytes_each(units, wanted.dimension)
        + units.process.node_bytes,
        disk_bytes=2 * held * _disk_bytes_each(units, wanted),
        for_memory=fewest,
        for_load=math.ceil(cores / wanted.busy / wanted.node_cores),
        build_hours=wanted.passages * _build_ms_each(units, wanted) / wanted.node_cores / 3.6e6,
        load_minutes=held * formulae.load_ms_each(units) / 6e4,
    )
