"""Estimates how long questions take, from unit costs and load. Pure.

A slow question is delayed by several causes at once, but seldom by the worst of each. The delays
beyond the median are therefore added as the root of their squares.
"""

import math
from dataclasses import dataclass

from winnow.cli.plan import formulae
from winnow.sizing.units import Units

_TAIL = 0.01
_FULL = 0.99
"""Highest load of a server in the formulae: at a load of 1 its queue grows without limit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionPath:
    """The costs of a question in a cluster. Times in milliseconds."""

    shards: int
    passages: int
    """Passages that are read."""
    cores: int
    """Cores of a content node."""
    front: float
    """Time of a front node's event loop."""
    retrieve: float
    """Time to retrieve from a shard."""
    read: float
    """Time to read a passage."""


def usual(units: Units, served: QuestionPath) -> float:
    """The median latency without other load."""
    rounds = math.ceil(formulae.busiest(served.passages, served.shards, 0.5) / served.cores)
    return _before_reading(units, served) + rounds * served.read


def slowest(units: Units, served: QuestionPath, nodes_busy: float, front_busy: float) -> float:
    """The 99th percentile, for shares of the time that cores of content nodes and event loops of
    front nodes are busy.
    """
    front_busy, nodes_busy = min(front_busy, _FULL), min(nodes_busy, _FULL)
    rounds = math.ceil(formulae.busiest(served.passages, served.shards, 0.5) / served.cores)
    most = math.ceil(formulae.busiest(served.passages, served.shards, 0.99) / served.cores)
    reading, retrieving = (
        formulae.slow(units.node.spread),
        formulae.slow(units.node.retrieve_spread),
    )
    encode = formulae.by_length(units.encode.question, formulae.QUESTION)
    more = (
        encode * (reading - 1),
        served.retrieve * (retrieving - 1),
        most * served.read * reading - rounds * served.read,
        _queue(served, nodes_busy),
        formulae.waiting_ms(served.front, 1, front_busy, _TAIL),
    )
    return usual(units, served) + math.hypot(*more)


def _queue(served: QuestionPath, busy: float) -> float:
    """Time that reads wait for other questions' reads.

    A question has several reads on a shard at once. So a shard serves fewer questions at once than
    it has cores.
    """
    together = math.ceil(served.passages / formulae.distinct(served.passages, served.shards))
    servers = max(served.cores // together, 1)
    service = math.ceil(together / served.cores) * served.read
    asked = formulae.distinct(served.passages, served.shards)
    return formulae.waiting_ms(service, servers, busy, _TAIL / asked)


def _before_reading(units: Units, served: QuestionPath) -> float:
    encode = formulae.by_length(units.encode.question, formulae.QUESTION)
    before = served.front + encode + served.retrieve + 2 * units.process.call_ms
    return before + formulae.half_ms(units)
