"""What things take in a simulated cluster: the measured units, with their spread, by chance."""

import random
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field

from winnow.cli.plan.formulae import by_length, half_ms, retrieve_ms
from winnow.sizing.units import SHARES, FrontUnits, LengthCost, Units

_MS = 1e-3


@dataclass(frozen=True, slots=True)
class Pauses:
    """What befalls a machine now and then: another tenant, a page that is not in memory, garbage.

    An assumption, not a measurement.
    """

    chance: float = 0.0
    """Of a call, 0 to 1."""
    seconds: float = 0.0
    """On average; exponentially spread."""


@dataclass(slots=True)
class Costs:
    """Draws what each thing takes, in seconds of a core."""

    units: Units
    passages: float
    """Of each shard."""
    dimension: int
    chance: random.Random
    pauses: Pauses = field(default_factory=Pauses)
    _retrieve: float = field(init=False)

    def __post_init__(self) -> None:
        self._retrieve = retrieve_ms(self.units, self.passages, self.dimension) * _MS

    @property
    def front(self) -> FrontUnits:
        """Of a front, in milliseconds."""
        return self.units.front

    @property
    def call(self) -> float:
        """Of a node's event loop, for a call."""
        return self.units.process.call_ms * _MS

    @property
    def client(self) -> float:
        """Of whoever asks, for a question."""
        return self.units.process.client_ms * _MS

    def encode(self, tokens: int) -> float:
        """To encode a question."""
        return self._run(self.units.encode.question, tokens)

    def retrieve(self) -> float:
        """To retrieve from one shard."""
        return self._retrieve * self._drawn(self.units.node.retrieve_spread)

    def read(self, tokens: int) -> float:
        """To read one passage; tokens are of the whole input."""
        return self._run(self.units.node.read, tokens)

    def half(self) -> float:
        """A question's own half, for a node that reads."""
        return half_ms(self.units) * _MS * self._drawn(self.units.node.spread)

    def pause(self) -> float:
        """That a call waits for what nobody planned."""
        if self.pauses.chance and self.chance.random() < self.pauses.chance:
            return self.chance.expovariate(1 / self.pauses.seconds)
        return 0.0

    def _run(self, costs: Sequence[LengthCost], tokens: int) -> float:
        return by_length(costs, tokens) * _MS * self._drawn(self.units.node.spread)

    def _drawn(self, spread: Sequence[float]) -> float:
        """A factor with these quantiles; straight lines between them."""
        share = self.chance.random()
        after = bisect_right(SHARES, share)
        low, high = SHARES[after - 1], SHARES[after]
        part = (share - low) / (high - low)
        return spread[after - 1] + part * (spread[after] - spread[after - 1])
