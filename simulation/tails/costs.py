"""Draws how long the work of a simulated cluster takes, from measured unit costs."""

import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from enum import Enum
from random import Random
from statistics import NormalDist

from simulation.network import Message, Part
from winnow.cli.plan.formulae import retrieve_ms
from winnow.sizing.serving import QUANTILES, CallCosts, Drift, ServingUnits, SpreadCost
from winnow.sizing.units import UnitCosts

_MS = 1e-3
_HIGHEST = 1 - 1e-9
_RETRIEVING = "Retrieve", "RetrieveFromShards", "ListShards"
"""Methods that take the time of a call that retrieves, at a front and at a content node."""


class Role(Enum):
    """What a process does."""

    CLIENT = "client"
    FRONT = "front"
    NODE = "node"


@dataclass(frozen=True, slots=True)
class Retrieval:
    """Mean times of a retrieval from one shard, and their spread."""

    python_ms: float
    native_ms: float
    """Time of the search of a graph, which does not hold Python's lock."""
    spread: Sequence[float]


class Ranks:
    """Draws how slow each work of a machine is: a rank from 0 for the fastest to 1.

    All ranks are equally likely. Those of about the same time are similar, since a machine stays
    faster or slower than usual for a while. Its time is that of its work at its mean speed: in
    simulated time a fast machine would do more work, so that low ranks were likelier.
    """

    def __init__(self, rng: Random, drift: Drift, cores: int) -> None:
        self._rng, self._drift, self._cores = rng, drift, cores
        self._level = rng.gauss()

    def draw(self, seconds: float) -> float:
        """Draws the rank of work that takes a core `seconds` in the mean."""
        kept = math.exp(-seconds / self._cores / self._drift.seconds)
        self._level = kept * self._level + math.sqrt(1 - kept**2) * self._rng.gauss()
        part = self._drift.correlation
        value = math.sqrt(part) * self._level + math.sqrt(1 - part) * self._rng.gauss()
        return min(NormalDist().cdf(value), _HIGHEST)


@dataclass(slots=True)
class Costs:
    """Draws durations of a process, in seconds of a core."""

    role: Role
    units: ServingUnits
    retrieval: Retrieval
    rng: Random
    _: KW_ONLY
    ranks: Ranks
    """Those of its machine."""

    def encode(self) -> float:
        """Draws the time to encode a question."""
        return self._draw(self.units.encode)

    def retrieve(self) -> tuple[float, float]:
        """Draws the times to retrieve from one shard: in Python, and in native code."""
        own = self.retrieval
        factor = self._factor(own.spread, own.python_ms + own.native_ms) * _MS
        return own.python_ms * factor, own.native_ms * factor

    def read(self) -> float:
        """Draws the time to read a passage."""
        return self._draw(self.units.read)

    def handle(self, message: Message, *, sends: bool) -> float:
        """Draws the time to send or to receive a message."""
        if message.part is Part.CANCEL:
            return 0.0
        units, calls = self.units, sends == (message.part is Part.REQUEST)
        if message.method == "Answer":
            ms = units.client_ms if self.role is Role.CLIENT else units.question_ms
            return ms / 2 * _MS * self._factor(units.front.spread, ms / 2)
        costs = units.front if calls else units.node
        ms = self._call_ms(costs, message) / 2
        return ms * _MS * self._factor(costs.spread, ms)

    def _call_ms(self, costs: CallCosts, message: Message) -> float:
        if message.method in _RETRIEVING:
            return costs.call_ms + costs.shard_ms * (message.shards - 1)
        return costs.read_ms

    def _draw(self, cost: SpreadCost) -> float:
        return cost.ms * _MS * self._factor(cost.spread, cost.ms)

    def _factor(self, spread: Sequence[float], ms: float) -> float:
        """Draws a factor for work of `ms`; it has these quantiles, and straight lines between."""
        share = self.ranks.draw(ms * _MS)
        after = bisect_right(QUANTILES, share)
        low, high = QUANTILES[after - 1], QUANTILES[after]
        part = (share - low) / (high - low)
        return spread[after - 1] + part * (spread[after] - spread[after - 1])


def retrieval_of(units: UnitCosts, serving: ServingUnits, passages: int) -> Retrieval:
    """Returns the times of a retrieval from a shard of this size.

    Between the sizes that were measured while serving, they are interpolated. In larger shards they
    grow as the search of a graph does (`winnow plan`).
    """
    few, many = serving.retrieve[0], serving.retrieve[-1]
    span = max(many.passages - few.passages, 1)
    part = min(max((passages - few.passages) / span, 0.0), 1.0)
    python_ms = few.cost.ms + part * (many.cost.ms - few.cost.ms)
    spread = many.cost.spread if part > 1 / 2 else few.cost.spread
    dimension = units.node.shards[0].dimension
    larger = max(passages, many.passages)
    growth = [retrieve_ms(units, size, dimension) for size in (larger, many.passages)]
    return Retrieval(python_ms, max(growth[0] - growth[1], 0.0), spread)
