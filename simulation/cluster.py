"""The processes of a simulated cluster: they start, are killed, and start again."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from simulation import snapshots
from simulation.channel import Addresses, Endpoint
from simulation.clock import EPOCH
from simulation.disk import DISKS, Disk, copy_tree
from simulation.front import RunningFront, open_front
from simulation.index import INDEX_ID
from simulation.journal_client import JournalHost, SimulatedNats
from simulation.journal_server import JetStreamModel
from simulation.loop import SimulatedLoop
from simulation.named_front import open_named_front
from simulation.network import Network
from simulation.node import NodeOptions, RunningNode, open_assigned_node, open_named_node, open_node
from simulation.plan import ALIAS, FIRST_INDEX, Plan
from simulation.process import OUTSIDE, Process
from simulation.randomness import seeded
from simulation.terminals import OnChange, Terminals
from winnow.assignment import AssignmentFile
from winnow.bundle import Bundle
from winnow.catalog import CatalogFile
from winnow.content_node.composing.node_indexes import index_directory
from winnow.domain.assignment import Assignment
from winnow.domain.catalog import Catalog, CatalogIndex
from winnow.domain.partition import Partition
from winnow.domain.shard import shard_name
from winnow.errors import UnavailableError, WinnowError

Result = TypeVar("Result")
_HEARTBEAT = 1.0
_MAX_PARTS = 8
"""Number of shards from which on none is split."""
_KEEPALIVE = 13.0
"""Seconds until a caller notices that the machine of the other process is gone: see
`winnow.rpc.channel`."""
_LINGER, _GRACE = 1.5, 1.0
"""Seconds in which a node that leaves still takes calls, and in which it finishes them."""


@dataclass(eq=False)
class SimulatedNode:
    """A content node, whether it runs or not."""

    name: str
    shards: tuple[int, ...]
    """The shards that it has at first."""
    disk: Disk
    process: Process
    running: RunningNode | None = None
    snapshots: list[tuple[int, str, int]] = field(default_factory=list)
    """The snapshots that were taken: shard, name, and number of the last write."""

    @property
    def address(self) -> str:
        return f"{self.name}:9000"


@dataclass(eq=False)
class SimulatedFront:
    """A front node, whether it runs or not."""

    name: str
    process: Process
    running: RunningFront | None = None
    killed_at: float = -1.0
    """When it was last killed."""
    calls: dict["asyncio.Future[Any]", None] = field(default_factory=dict)
    """The running calls of clients, which end with the process."""


class Cluster:
    """All processes, and the network between them."""

    def __init__(
        self,
        plan: Plan,
        bundle: Bundle,
        index: Path,
        *,
        loop: SimulatedLoop,
        directory: Path,
        record: Callable[[str], None],
        report: Callable[[str], None],
        lose_tail: Callable[[int], None],
        on_load: Callable[["SimulatedNode"], None],
        on_catalog: OnChange,
    ) -> None:
        """`record` adds a line to the timeline; `report` adds a violation.

        `lose_tail` is called with each shard whose journal has lost acknowledged entries, `on_load`
        with each node that has loaded its shards, and `on_catalog` with each version of the catalog
        that a command has written.
        """
        self._plan, self._bundle, self._loop = plan, bundle, loop
        self._record, self._report, self._lose_tail = record, report, lose_tail
        self._on_load = on_load
        self.network = Network(loop, seeded(f"network {plan.seed}"), record)
        self.addresses = Addresses(self.network)
        shape = plan.shape
        self.journal = JournalHost(
            self.network,
            JetStreamModel(plan.syncs_journal),
            Process("journal"),
            lambda: _wall(loop, self.journal),
        )
        SimulatedNats.host = self.journal
        self.nodes = {
            name: self._install_node(name, shards, index, directory)
            for name, shards in shape.nodes().items()
        }
        self.fronts = {name: SimulatedFront(name, Process(name)) for name in shape.front_names()}
        self._assignment_path = directory / "assignment.json"
        self._assignment = AssignmentFile(str(self._assignment_path))
        if shape.is_assigned:
            self._assignment.replace(self._first_assignment())
        self.catalog_path = directory / "indexes.json"
        self.catalog = self._first_catalog() if shape.is_named else None
        """The first version of the catalog; None without named indexes."""
        if self.catalog is not None:
            CatalogFile(str(self.catalog_path)).replace(self.catalog)
        self.terminals = Terminals(
            shape.terminal_names(),
            self.catalog_path,
            loop=loop,
            record=record,
            report=report,
            on_change=on_catalog,
        )

    def _install_node(
        self, name: str, shards: tuple[int, ...], index: Path, directory: Path
    ) -> SimulatedNode:
        root = directory / name
        parent = index_directory(root, INDEX_ID) if self._plan.shape.is_named else root
        parent.mkdir(parents=True)
        for shard in shards:
            own = shard_name(shard, self._plan.shape.shards)
            copy_tree(index / own, parent / own)
        rng = seeded(f"disk {name} {self._plan.seed}")
        disk = Disk(root, rng, tracks_syncs=self._plan.has_power_loss)
        DISKS.all.append(disk)
        if disk.tracks_syncs:
            disk.sync_all()
        return SimulatedNode(name, shards, disk, Process(name))

    def _first_assignment(self) -> Assignment:
        return Assignment(
            index_id=INDEX_ID,
            shards=self._plan.shape.shards,
            version=1,
            nodes={node.name: node.address for node in self.nodes.values()},
            holders=self._first_holders(),
        )

    def _first_catalog(self) -> Catalog:
        index = CatalogIndex(
            index_id=INDEX_ID, shards=self._plan.shape.shards, holders=self._first_holders()
        )
        nodes = {node.name: node.address for node in self.nodes.values()}
        return Catalog().with_index(FIRST_INDEX, index, nodes).with_alias(ALIAS, FIRST_INDEX)

    def _first_holders(self) -> dict[int, tuple[str, ...]]:
        return {
            shard: tuple(node.name for node in self.nodes.values() if shard in node.shards)
            for shard in range(self._plan.shape.shards)
        }

    def holders(self) -> Mapping[int, tuple[str, ...]]:
        """Returns the names of the nodes that should serve each shard now."""
        if not self._plan.shape.is_assigned:
            return self._first_holders()
        return self._read_assignment().holders

    def shards_of(self, name: str) -> list[int]:
        """Returns the shards that a node should serve now."""
        return [shard for shard, names in self.holders().items() if name in names]

    @property
    def partition(self) -> Partition:
        """The shards that there are now."""
        return Partition(self._plan.shape.shards, self.holders().keys())

    def _read_assignment(self) -> Assignment:
        assignment = self._assignment.read()
        assert assignment is not None
        return assignment

    def move(self, number: int, to: str) -> None:
        """Assigns a shard to another node, as `winnow shards move` does.

        `number` chooses the shard, and its replica. If the node has the shard already, the next one
        gets it.
        """
        assignment = self._read_assignment()
        shards = sorted(assignment.holders)
        shard = shards[number % len(shards)]
        names = assignment.holders[shard]
        nodes = list(self.nodes)
        start = nodes.index(to)
        others = [each for each in (*nodes[start:], *nodes[:start]) if each not in names]
        source = names[number % len(names)]
        self._record(f"shard {shard} is moved from {source} to {others[0]}")
        self._assignment.replace(assignment.with_move(shard, source, others[0], assignment.nodes))

    def split(self, number: int) -> None:
        """Splits a shard in two, as `winnow shards split` does."""
        assignment = self._read_assignment()
        shards = sorted(assignment.holders)
        if len(shards) >= _MAX_PARTS:
            return
        shard = shards[number % len(shards)]
        self._record(f"shard {shard} is split")
        self._assignment.replace(assignment.with_split(shard, assignment.nodes))

    def start(self) -> None:
        """Starts all processes."""
        if self._plan.shape.has_journal:
            self._start_journal()
        for node in self.nodes.values():
            self._start_node(node)
        for front in self.fronts.values():
            self._start_front(front)

    def process(self, name: str) -> Process:
        """Returns the process that runs, or ran last, under a name."""
        if name == "journal":
            return self.journal.process
        if name in self.terminals.all:
            return self.terminals.all[name].process
        return self.nodes[name].process if name in self.nodes else self.fronts[name].process

    def kill(self, name: str, *, power_loss: bool = False) -> None:
        """Ends a process at once."""
        process = self.process(name)
        if not process.alive:
            return
        self._record(f"{name}  is killed" + (" by a power loss" if power_loss else ""))
        self._loop.kill(process)
        if power_loss:
            self.network.dark.add(name)
            lose, context = self.addresses.lose_connections, OUTSIDE.context()
            self._loop.call_later(_KEEPALIVE, lose, process, context=context)
        else:
            self.addresses.end_connections(process)
        if name in self.nodes:
            node = self.nodes[name]
            node.running = None
            node.disk.restart(power_loss=power_loss)
        elif name == "journal":
            for stream in self.journal.model.restart(power_loss=power_loss):
                self._record(f"journal  lost the last entries of {stream}")
                self._lose_tail(int(stream.rpartition("-")[2]))
        elif name in self.fronts:
            front = self.fronts[name]
            front.running, front.killed_at = None, self._loop.time()
            for call in list(front.calls):
                if not call.done():
                    call.set_exception(UnavailableError("the front was killed"))

    def take_snapshot(self, name: str) -> None:
        """Takes a snapshot of each shard of a node, in its process, if it runs."""
        node = self.nodes[name]

        def take(shard: int) -> None:
            try:
                taken = snapshots.take(node.disk.root, shard, self._plan.shape.shards)
            except WinnowError as error:
                self._record(f"{name}  no snapshot of shard {shard}: {error}")
            else:
                self._record(f"{name}  snapshot {taken.name} of shard {shard}")
                node.snapshots.append((shard, taken.name, taken.parts[0].sequence))

        async def take_all() -> None:
            for shard in node.shards:
                await asyncio.get_running_loop().run_in_executor(None, take, shard)

        if node.running is not None:
            self._run(node.process, take_all(), "cannot take a snapshot")

    def break_connections(self, one: str, other: str) -> None:
        """Breaks the connections between two processes, which then connect again."""
        self._record(f"the connections of {one} and {other} break")
        self.addresses.break_connections(one, other)
        for name in {one, other} & {"journal"}:
            self.journal.break_connections(one if name == other else other)

    async def leave(self, name: str) -> None:
        """Shuts a content node down as after SIGTERM: announces it, finishes calls, and closes."""
        node = self.nodes[name]
        running = node.running
        if running is None or not node.process.alive:
            return
        self._record(f"{name}  leaves")
        left = self._loop.create_future()

        async def close() -> None:
            running.shards.start_leaving()
            await asyncio.sleep(_LINGER)
            running.server.serving = False
            await asyncio.sleep(_GRACE)
            await running.shards.close()
            self._loop.run_in(OUTSIDE, left.set_result, None)

        self._run(node.process, close(), "did not shut down")
        await left

    def restart(self, name: str) -> None:
        """Starts a process that was killed."""
        if self.process(name).alive:
            return
        if name in self.terminals.all:
            self.terminals.restart(name)
            return
        self._record(f"{name}  starts")
        self.network.dark.discard(name)
        offset = self.process(name).wall_offset
        process = Process(name, wall_offset=offset)
        if name in self.nodes:
            self.nodes[name].process = process
            self._start_node(self.nodes[name])
        elif name == "journal":
            self.journal.process = process
            self._start_journal()
        else:
            self.fronts[name].process = process
            self._start_front(self.fronts[name])

    async def call(
        self, name: str, work: Callable[[RunningFront], Awaitable[Result]], timeout: float
    ) -> Result:
        """Makes a call of a client to a front; raises TimeoutError at the deadline."""
        front = self.fronts[name]
        running = front.running
        if running is None or not front.process.alive:
            raise UnavailableError("the front does not run")
        future: asyncio.Future[Result] = self._loop.create_future()
        front.calls[future] = None

        async def handle() -> None:
            try:
                result = await work(running)
            except Exception as error:  # noqa: BLE001 (the client gets it)
                self._loop.run_in(OUTSIDE, _fail, future, error)
            else:
                self._loop.run_in(OUTSIDE, _succeed, future, result)

        handling = self._loop.start(front.process, handle())
        try:
            async with asyncio.timeout(timeout):
                return await future
        except TimeoutError:
            self._loop.run_in(front.process, handling.cancel)  # as gRPC does at the deadline
            raise
        finally:
            del front.calls[future]
            if not future.cancel() and not future.cancelled():
                future.exception()

    def _start_journal(self) -> None:
        async def beat() -> None:
            while True:
                await asyncio.sleep(_HEARTBEAT)
                self.journal.model.beat(self._loop.time())

        self._loop.start(self.journal.process, beat())

    def _start_node(self, node: SimulatedNode) -> None:
        process = node.process

        async def run() -> None:
            opened = self._open_node(node)
            opened.server.serving = True
            node.running = opened
            self.addresses.endpoints[node.address] = Endpoint(process, opened.server)
            await opened.shards.load()
            self._on_load(node)

        self._run(process, run(), "did not start")

    def _open_node(self, node: SimulatedNode) -> RunningNode:
        shape, root = self._plan.shape, node.disk.root
        options = NodeOptions(
            bundle=self._bundle, journal=shape.has_journal, merge_after=self._plan.merge_after
        )
        if shape.is_named:
            return open_named_node(options, node.name, root, self.catalog_path)
        if shape.is_assigned:
            return open_assigned_node(options, node.name, root, self._assignment_path)
        return open_node(options, [root / shard_name(each, shape.shards) for each in node.shards])

    def _start_front(self, front: SimulatedFront) -> None:
        async def run() -> None:
            addresses = [each.address for each in self.nodes.values()]
            if self._plan.shape.is_named:
                front.running = await open_named_front(self._bundle, addresses, self.catalog_path)
            else:
                front.running = await open_front(self._bundle, addresses)
            part = front.running.part
            for name, task in part.tasks.items():
                self._run(front.process, task(), f"lost its task of {name}")
            await part.prepare()

        self._run(front.process, run(), "did not start")

    def _run(self, process: Process, work: Any, failure: str) -> None:
        """Starts a task of a process whose failure is a violation."""

        async def supervised() -> None:
            try:
                await work
            except Exception as error:  # noqa: BLE001 (reported)
                if process.alive:  # a killed process runs no `finally` blocks
                    self._report(f"{process.name} {failure}: {error!r}")

        self._loop.start(process, supervised())


def _wall(loop: SimulatedLoop, host: JournalHost) -> float:
    return EPOCH + loop.time() + host.process.wall_offset


def _fail(future: "asyncio.Future[Any]", error: Exception) -> None:
    if not future.done():
        future.set_exception(error)


def _succeed(future: "asyncio.Future[Any]", result: Any) -> None:
    if not future.done():
        future.set_result(result)
