"""Estimates the latency of questions from unit costs and load. Pure.

A slow question has several delays, but seldom the worst of each. So the estimate adds the root of
the sum of the squared delays to the median.
"""

import math
from dataclasses import dataclass

from winnow.cli.plan import formulae
from winnow.sizing.units import UnitCosts

_TAIL = 0.01
"""Share of the questions beyond the 99th percentile."""
_MAX_LOAD = 0.99
"""Maximum utilisation of a server in the formulae: at 1 its queue grows without limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionCosts:
    """The costs of a question in a cluster. Times are in milliseconds."""

    shards: int
    passages: int
    """Passages that are read."""
    cores: int
    """Cores of a content node."""
    front: float
    """Time of the event loop of a front node."""
    retrieve: float
    """Time to retrieve from a shard."""
    read: float
    """Time to read a passage."""


def p50_ms(units: UnitCosts, costs: QuestionCosts) -> float:
    """Returns the median latency of a question without load, in milliseconds."""
    rounds = math.ceil(
        formulae.max_reads_per_shard(costs.passages, costs.shards, 0.5) / costs.cores
    )
    return _before_reading(units, costs) + rounds * costs.read


def p99_ms(units: UnitCosts, costs: QuestionCosts, nodes_busy: float, front_busy: float) -> float:
    """Returns the 99th percentile of the latency of a question, in milliseconds.

    `nodes_busy` is the utilisation of the cores of content nodes, `front_busy` that of the event
    loops of front nodes.
    """
    front_busy, nodes_busy = min(front_busy, _MAX_LOAD), min(nodes_busy, _MAX_LOAD)
    rounds = math.ceil(
        formulae.max_reads_per_shard(costs.passages, costs.shards, 0.5) / costs.cores
    )
    max_rounds = math.ceil(
        formulae.max_reads_per_shard(costs.passages, costs.shards, 0.99) / costs.cores
    )
    reading, retrieving = (
        formulae.p99_factor(units.node.spread),
        formulae.p99_factor(units.node.retrieve_spread),
    )
    encode = formulae.interpolate_ms(units.encode.question, formulae.QUESTION)
    delays = (
        encode * (reading - 1),
        costs.retrieve * (retrieving - 1),
        max_rounds * costs.read * reading - rounds * costs.read,
        _queue_ms(costs, nodes_busy),
        formulae.waiting_ms(costs.front, 1, front_busy, _TAIL),
    )
    return p50_ms(units, costs) + math.hypot(*delays)


def _queue_ms(costs: QuestionCosts, busy: float) -> float:
    """Time that reads wait for reads of other questions.

    A question has several parallel reads on a shard. So a shard serves fewer questions in parallel
    than it has cores.
    """
    readers = formulae.reading_shards(costs.passages, costs.shards)
    parallel = math.ceil(costs.passages / readers)
    servers = max(costs.cores // parallel, 1)
    service = math.ceil(parallel / costs.cores) * costs.read
    return formulae.waiting_ms(service, servers, busy, _TAIL / readers)


def _before_reading(units: UnitCosts, costs: QuestionCosts) -> float:
    encode = formulae.interpolate_ms(units.encode.question, formulae.QUESTION)
    before = costs.front + encode + costs.retrieve + 2 * units.process.call_ms
    return before + formulae.question_layers_ms(units)
