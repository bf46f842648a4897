"""How long questions take, by unit costs and load. Pure.

The slowest of a hundred meets several things at once, but seldom the worst of each: what they add
to the median is squared, added and drawn the root of.
"""

import math
from dataclasses import dataclass

from winnow.cli.plan import formulae
from winnow.sizing.units import Units

_TAIL = 0.01
_FULL = 0.99
"""Share of the time beyond which a server never comes to an end."""


@dataclass(frozen=True, slots=True)
class QuestionPath:
    """A question's way through a cluster; milliseconds."""

    shards: int
    passages: int
    """That are read."""
    cores: int
    """Of a node."""
    front: float
    """Of a front's event loop."""
    retrieve: float
    """Of a shard."""
    read: float
    """Of a passage."""


def usual(units: Units, served: QuestionPath) -> float:
    """The median without other load."""
    rounds = math.ceil(formulae.busiest(served.passages, served.shards, 0.5) / served.cores)
    return _before_reading(units, served) + rounds * served.read


def slowest(units: Units, served: QuestionPath, nodes_busy: float, front_busy: float) -> float:
    """The 99th percentile, with cores of nodes and event loops of fronts busy for such shares of
    the time.
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
    """What reads wait for other questions' reads. A question brings a shard several at a time, so
    that fewer of them are served at once than there are cores.
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
