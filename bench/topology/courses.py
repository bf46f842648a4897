"""What is done to the cluster, phase by phase."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from bench.topology.askers import Askers
from bench.topology.cluster import Cluster


@dataclass(frozen=True, slots=True)
class Stage:
    """A cluster, those who ask it, and how long things last, in seconds."""

    cluster: Cluster
    askers: Askers
    lasting: float
    """Of each phase in which nothing changes."""
    settling: float
    """Between two replacements of a rolling update, as `minReadySeconds` in Kubernetes."""
    say: Callable[[str], None]

    async def phase(self, name: str, during: Awaitable[object] | None = None) -> None:
        """Lets a phase last, or as long as something is being done."""
        self.askers.phase = name
        self.say(name)
        await (asyncio.sleep(self.lasting) if during is None else during)


Course = Callable[[Stage], Awaitable[None]]


async def roll_nodes(stage: Stage) -> None:
    """Every content node is ended in order, one after the other, and started at another address."""

    async def rolling() -> None:
        for process in stage.cluster.nodes:
            await stage.cluster.end(process)
            await stage.cluster.replace(process)
            await asyncio.sleep(stage.settling)

    await stage.phase("nodes rolled", rolling())


async def roll_fronts(stage: Stage) -> None:
    """Every front gets a successor first, and is ended in order then."""

    async def rolling() -> None:
        for process in list(stage.cluster.fronts):
            rack = process.host.rack
            await stage.cluster.start(stage.cluster.add_front(f"{process.host.name}n", rack))
            await asyncio.sleep(stage.settling)
            await stage.cluster.end(process)
            stage.cluster.fronts.remove(process)

    await stage.phase("fronts rolled", rolling())


async def lose_node(stage: Stage) -> None:
    """The host of a content node is gone, and comes back at another address."""
    lost = stage.cluster.nodes[0]
    stage.cluster.lose(lost)
    await stage.phase("node's host lost")
    await stage.phase("node's host back", stage.cluster.replace(lost))


async def lose_front(stage: Stage) -> None:
    """The host of a front is gone, and comes back at another address."""
    lost = stage.cluster.fronts[0]
    stage.cluster.lose(lost)
    await stage.phase("front's host lost")
    await stage.phase("front's host back", stage.cluster.replace(lost))


async def split(stage: Stage) -> None:
    """The racks do not reach each other; the DNS server is in the first one."""
    stage.cluster.network.join(False)
    await stage.phase("racks apart")
    stage.cluster.network.join(True)
    await stage.phase("racks joined")


COURSES: dict[str, Course] = {
    "roll-nodes": roll_nodes,
    "roll-fronts": roll_fronts,
    "lose-node": lose_node,
    "lose-front": lose_front,
    "split": split,
}
