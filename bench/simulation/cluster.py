"""Clusters to simulate: all on one machine, or every node on a machine of its own."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import simpy

from bench.simulation.costs import Costs
from bench.simulation.front import Front, MiddleNode
from bench.simulation.machine import Machine
from bench.simulation.node import Answering, ContentNode
from bench.simulation.shard import Shard, Tally
from winnow.stateless.policy.waiting import WaitingSettings
from winnow.stateless.replicas.replicated import ReplicaPolicies

LOOPBACK = 0.0
"""Seconds of a message within a machine: what it takes is counted with the calls."""
NETWORK = 100e-6
"""Seconds of a message between machines of one room."""


@dataclass(frozen=True, slots=True)
class Layout:
    """What a cluster of many machines is made of."""

    shards: int
    replicas: int = 1
    cores: int = 4
    """Of every machine."""
    fan: int = 0
    """Shards of a middle node; 0 for none, when the front asks every shard."""
    slow_share: float = 0.0
    """Of the nodes, whose work takes `slowness` times as long."""
    slowness: float = 1.0
    policies: ReplicaPolicies = field(default_factory=ReplicaPolicies)
    waiting: WaitingSettings = field(default_factory=WaitingSettings)


def on_one_machine(
    env: simpy.Environment, costs: Costs, cores: int, shards: int, threads: int
) -> tuple[Front, Machine]:
    """A front and a node for each shard, as `winnow up` starts them."""
    machine = Machine(env, cores, costs.units.node.together)
    tally = Tally()
    made = [
        Shard(
            env,
            {f"node-{number}": ContentNode(env, costs, machine, threads)},
            ReplicaPolicies(),
            costs.chance,
            LOOPBACK,
            tally,
        )
        for number in range(shards)
    ]
    return Front(env, machine, cores, lambda _: made, costs), machine


def on_many_machines(env: simpy.Environment, costs: Costs, layout: Layout) -> tuple[Front, Tally]:
    """A front and nodes, each with cores of its own."""
    tally, together = Tally(), costs.units.node.together

    def machine() -> Machine:
        return Machine(env, layout.cores, together)

    def node() -> Answering:
        slow = costs.chance.random() < layout.slow_share
        return ContentNode(env, costs, machine(), layout.cores, layout.slowness if slow else 1.0)

    def middle(shards: Sequence[Shard]) -> Answering:
        return MiddleNode(env, machine(), shards, costs, costs.chance, layout.waiting)

    def shard(replicas: Sequence[Answering]) -> Shard:
        nodes = {f"node-{number}": each for number, each in enumerate(replicas)}
        return Shard(env, nodes, layout.policies, costs.chance, NETWORK, tally)

    made = [shard([node() for _ in range(layout.replicas)]) for _ in range(layout.shards)]
    if layout.fan:
        parts = [made[first : first + layout.fan] for first in range(0, len(made), layout.fan)]
        made = [shard([middle(part)]) for part in parts]
    front = Front(env, machine(), layout.cores, lambda _: made, costs, layout.waiting)
    return front, tally
