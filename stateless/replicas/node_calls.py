"""Counts and times the joint calls to each content node, and computes the cost of the next one."""

import random
from dataclasses import dataclass

from winnow.deadline import Clock
from winnow.policy.recent import DecayedMean

_MAX_IDLE_NODES = 1_000
"""Number of known nodes at which nodes without running calls are forgotten."""


@dataclass(slots=True)
class _Node:
    latency: DecayedMean
    """Mean latency, divided by the typical latency of such calls."""
    running: int = 0
    """Number of running calls."""


class NodeCalls:
    """The load and latency of each node. All replicas on one node share them."""

    def __init__(self, half_life: float, clock: Clock, rng: random.Random) -> None:
        """`half_life`: seconds after which a latency counts half."""
        self._half_life, self._clock, self._rng = half_life, clock, rng
        self._nodes: dict[str, _Node] = {}

    def running(self, address: str) -> int:
        """Number of running calls to a node."""
        node = self._nodes.get(address)
        return node.running if node is not None else 0

    def cost(self, address: str) -> float:
        """The cost of a call to a node: expected latency times running calls, with this call.

        A random factor of 1 to 2 keeps fronts with the same knowledge from calling the same node.
        """
        handicap = 1 + self._rng.random()
        if (node := self._nodes.get(address)) is None:
            return handicap
        mean = node.latency.value
        expected = 1.0 if mean is None else mean * node.latency.last_sample_weight()
        return max(expected, 1e-9) * (node.running + 1) * handicap

    def record_start(self, address: str) -> None:
        """Records the start of a call to a node."""
        node = self._nodes.get(address)
        if node is None:
            self._forget_idle()
            node = self._nodes[address] = _Node(DecayedMean(self._half_life, self._clock))
        node.running += 1

    def record_end(self, address: str, relative_latency: float | None) -> None:
        """Records the end of a call to a node.

        `relative_latency`: its latency divided by the typical latency; None if it is not known.
        """
        node = self._nodes[address]
        node.running -= 1
        if relative_latency is not None:
            node.latency.add(relative_latency)

    def _forget_idle(self) -> None:
        if len(self._nodes) >= _MAX_IDLE_NODES:
            self._nodes = {address: node for address, node in self._nodes.items() if node.running}
