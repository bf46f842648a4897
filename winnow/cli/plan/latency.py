"""Estimates the latency of questions from unit costs and load. Pure.

A slow question has several delays, but seldom the worst of each. So the delays beyond the median
are added as the root of their squares.
"""

import math
from dataclasses import dataclass

from winnow.cli.plan import formulae
from winnow.sizing.units import Units

_TAIL = 0.01
"""Share of the questions beyond the 99th percentile."""
_MAX_LOAD = 0.99
"""Maximum utilisation of a server in the formulae: at 1 its queue grows without limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionPath:
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


def p50_ms(units: Units, served: QuestionPath) -> float:
    """The median latency without load."""
    rounds = math.ceil(
        formulae.max_reads_per_shard(served.passages, served.shards, 0.5) / served.cores
    )
    return _before_reading(units, served) + rounds * served.read


def p99_ms(units: Units, served: QuestionPath, nodes_busy: float, front_busy: float) -> float:
    """The 99th percentile of latency.

    `nodes_busy` is the utilisation of the cores of content nodes, `front_busy` that of the event
    loops of front nodes.
    """
    front_busy, nodes_busy = min(front_busy, _MAX_LOAD), min(nodes_busy, _MAX_LOAD)
    rounds = math.ceil(
        formulae.max_reads_per_shard(served.passages, served.shards, 0.5) / served.cores
    )
    max_rounds = math.ceil(
        formulae.max_reads_per_shard(served.passages, served.shards, 0.99) / served.cores
    )
    reading, retrieving = (
        formulae.p99_factor(units.node.spread),
        formulae.p99_factor(units.node.retrieve_spread),
    )
    encode = formulae.interpolate_ms(units.encode.question, formulae.QUESTION)
    delays = (
        encode * (reading - 1),
        served.retrieve * (retrieving - 1),
        max_rounds * served.read * reading - rounds * served.read,
        _queue_ms(served, nodes_busy),
        formulae.waiting_ms(served.front, 1, front_busy, _TAIL),
    )
    return p50_ms(units, served) + math.hypot(*delays)


def _queue_ms(served: QuestionPath, busy: float) -> float:
    """Time that reads wait for reads of other questions.

    A question has several parallel reads on a shard. So a shard serves fewer questions in parallel
    than it has cores.
    """
    readers = formulae.reading_shards(served.passages, served.shards)
    parallel = math.ceil(served.passages / readers)
    servers = max(served.cores // parallel, 1)
    service = math.ceil(parallel / served.cores) * served.read
    return formulae.waiting_ms(service, servers, busy, _TAIL / readers)


def _before_reading(units: Units, served: QuestionPath) -> float:
    encode = formulae.interpolate_ms(units.encode.question, formulae.QUESTION)
    before = served.front + encode + served.retrieve + 2 * units.process.call_ms
    return before + formulae.question_layers_ms(units)
