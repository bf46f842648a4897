"""The state of a cluster after all faults: it takes writes, answers, and its replicas agree."""

import asyncio
import contextlib
from typing import Any

from simulation import growth, resources, snapshots
from simulation.checking import Checker
from simulation.clients import Clients
from simulation.cluster import Cluster, SimulatedNode
from simulation.history import History
from simulation.indexes import Indexes
from simulation.loop import SimulatedLoop
from simulation.node import RunningNode
from simulation.plan import Shape, Step, StepKind
from simulation.timeline import Timeline
from winnow.domain.partition import Partition
from winnow.domain.tenant import stored_id
from winnow.errors import GenerationGoneError, WinnowError

_POOLS_OF_PARTS = 16
"""Pools of replicas of a front, at most, if shards are split."""
_MANY_CALLS, _MAX_ITEMS = 150, 64
"""Calls from which on tables are checked, and their maximum length. More calls do not matter."""
_LAST_TIMEOUT = 20.0
_LAST_SECONDS = 5.0
"""Seconds in which replicas apply the last writes."""


class Recovery:
    """The checks of a cluster at the end of a simulation."""

    def __init__(
        self,
        shape: Shape,
        cluster: Cluster,
        history: History,
        indexes: Indexes,
        clients: Clients,
        loop: SimulatedLoop,
        timeline: Timeline,
    ) -> None:
        self._shape, self._cluster, self._history = shape, cluster, history
        self._indexes, self._clients = indexes, clients
        self._loop, self._timeline = loop, timeline

    def has_moved_all(self) -> bool:
        """Whether each node has exactly its shards."""
        return all(
            node.running is not None
            and node.running.numbers() == sorted(self._cluster.shards_of(node.name))
            for node in self._cluster.nodes.values()
        )

    async def check(self) -> None:
        """Checks that the cluster has recovered: it takes writes, answers, and replicas agree."""
        partition = self._partition()
        for number, name in enumerate(self._cluster.fronts):
            written: set[int] = set()
            for attempt in range(200):
                identifier = f"last-{number}-{attempt}"
                tenant = self._shape.tenant(2 * attempt)
                shard = partition.shard_of(stored_id(tenant, identifier))
                if shard in written:
                    continue
                written.add(shard)
                step = Step(
                    at=0,
                    kind=StepKind.PUT,
                    client=number,
                    tenant=tenant,
                    id=identifier,
                    text=f"w1 {identifier}",
                    timeout=_LAST_TIMEOUT,
                )
                call = await self._clients.write(step)
                if call.error and self._is_served(shard):
                    self._timeline.report(
                        f"{name} cannot write to shard {shard} at the end: {call.error}"
                    )
                if written == set(partition):
                    break
            asked = await self._clients.ask(
                Step(
                    at=0,
                    kind=StepKind.ASK,
                    client=number,
                    tenant=self._shape.tenant(2 * number),
                    text=f"w1 w2 w{3 + number}",
                    timeout=_LAST_TIMEOUT,
                    waits_for_writes=True,
                )
            )
            if self._indexes.present.lost:
                continue  # a front may still wait for a write that was lost
            if asked.answered is None:
                self._timeline.report(f"{name} cannot answer at the end: {asked.error}")
            elif not asked.answered.coverage.complete:
                self._timeline.report(f"{name} does not search all shards at the end")
        await asyncio.sleep(_LAST_SECONDS)
        self._check_nodes()
        self._check_resources()
        self._timeline.report_all(self._indexes.check_histories(partition))
        self._timeline.report_all(self._indexes.present.check_parts())
        await self._restart_all()

    def _partition(self) -> Partition:
        """Returns the shards of the index to which clients write."""
        if not self._shape.is_named:
            return self._cluster.partition
        holders = self._indexes.holders(self._indexes.present.index)
        return Partition(len(holders), holders.keys())

    def _check_resources(self) -> None:
        """Checks that no process has work left, and that fronts have kept their budgets."""
        indexes = len(self._indexes.all)
        for node in self._cluster.nodes.values():
            if node.running is not None:
                tasks = self._loop.tasks_of(node.process)
                self._timeline.report_all(
                    resources.check_idle(node.name, node.running.registry, tasks, indexes)
                )
        self._check_growth()
        shape = self._shape
        pools = _POOLS_OF_PARTS if shape.is_assigned else shape.shards
        for front in self._cluster.fronts.values():
            if front.running is not None:
                registry, tasks = front.running.registry, self._loop.tasks_of(front.process)
                self._timeline.report_all(
                    resources.check_idle(front.name, registry, tasks, indexes)
                )
                sent = self._cluster.addresses.sent[front.name]
                self._timeline.report_all(
                    resources.check_budgets(front.name, registry, sent, pools)
                )

    def _check_growth(self) -> None:
        """Checks after many calls that no process has a table that grows with each call."""
        if len(self._history.writes) + len(self._history.questions) < _MANY_CALLS:
            return
        running = {name: node.running for name, node in self._cluster.nodes.items()}
        fronts = {name: front.running for name, front in self._cluster.fronts.items()}
        for name, process in (*running.items(), *fronts.items()):
            self._timeline.report_all(growth.large_tables(process, name, _MAX_ITEMS))

    async def _restart_all(self) -> None:
        """Checks that a kill of all nodes at the end loses nothing."""
        for name in self._cluster.nodes:
            self._cluster.kill(name)
            self._cluster.restart(name)
        await asyncio.sleep(_LAST_SECONDS)
        self._check_nodes()

    def _serving(self, shard: int) -> list[str]:
        """Returns the names of the nodes that serve a shard."""
        return [
            node.name
            for node in self._cluster.nodes.values()
            if shard in node.shards
            and node.running is not None
            and not _fault_of(node.running.served().searcher(shard))
        ]

    def _is_served(self, shard: int) -> bool:
        """Whether a shard must be served: if a journal loses entries, all replicas may stop."""
        return shard not in self._indexes.present.lost or bool(self._serving(shard))

    def _check_nodes(self) -> None:
        for node in self._cluster.nodes.values():
            self._check_node(node)
            self._check_snapshots(node)
        for shard in self._indexes.present.lost:
            self._timeline.report_all(
                self._indexes.present.check_served_logs(shard, self._serving(shard))
            )

    def _check_snapshots(self, node: SimulatedNode) -> None:
        """Checks that each snapshot that was taken is there, with the passages of its moment."""
        for shard, name, sequence in node.snapshots:
            if shard in self._indexes.present.lost:
                continue
            try:
                found = snapshots.texts_of(node.disk.root, shard, self._shape.shards, name)
            except WinnowError as error:
                self._timeline.report(f"snapshot {name} of {node.name} is lost: {error}")
                continue
            if found != self._indexes.present.state(shard, sequence):
                self._timeline.report(
                    f"snapshot {name} of {node.name} has other passages than its log"
                )

    def _check_node(self, node: SimulatedNode) -> None:
        """Checks the state of a node at the end."""
        if node.running is None:
            self._timeline.report(f"{node.name} does not run at the end")
            return
        for name, checker in self._indexes.all.items():
            self._check_index_of_node(node.name, node.running, name, checker)

    def _check_index_of_node(
        self, node: str, running: RunningNode, name: str, checker: Checker
    ) -> None:
        """Checks what a node has of an index at the end."""
        index_id = self._indexes.id_of(name)
        holders = self._indexes.holders(name) if name else self._cluster.holders()
        shards = sorted(shard for shard, names in holders.items() if node in names)
        if not self._shape.is_fixed and (found := running.numbers(index_id)) != shards:
            self._timeline.report(
                f"{node} has the shards {found} of {name} at the end, not {shards}"
            )
            return
        for shard in shards:
            served: Any = running.served(index_id).searcher(shard)
            lost = shard in checker.lost
            if fault := _fault_of(served):
                if not lost:
                    self._timeline.report(
                        f"{node} does not serve shard {shard} at the end: {fault}"
                    )
                continue
            live = served.transfer.shard
            last = len(checker.log(shard).writes)
            if live.sequence != last and not lost:
                self._timeline.report(
                    f"{node} has write {live.sequence} of shard {shard}, not {last}"
                )
            expected = (
                checker.state(shard, live.sequence)
                if self._shape.is_assigned
                else checker.own_state(shard, node)
            )
            texts = _texts_of(live.view)
            if texts != expected:
                self._timeline.report(
                    f"{node} has other passages in shard {shard} than its log: "
                    f"{sorted(texts.items() ^ expected.items())}"
                )


def _fault_of(served: Any) -> str:
    """Returns why a node does not serve a shard to fronts; empty if it does."""
    return str(served.fault or served._withdrawal_reason)  # noqa: SLF001


def _texts_of(view: Any) -> dict[str, str]:
    """Returns the texts of all live passages of a view, by id."""
    found = {}
    for placed in view.segments:
        for row in range(placed.segment.rows):
            if placed.live_rows is None or placed.live_rows[row]:
                with contextlib.suppress(GenerationGoneError):  # a row that a merge emptied
                    passage = placed.segment.load(row).passage
                    found[passage.id] = passage.text
    return found
