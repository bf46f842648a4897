"""Simulates a cluster that answers questions; returns the latency of each answer."""

import asyncio
import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import grpc

from simulation import addresses, clock, fixtures, logs, randomness
from simulation.channel import Addresses, Endpoint, SimulatedServer
from simulation.models import WORDS
from simulation.process import Process
from simulation.tails.costs import Costs, Ranks, Role, retrieval_of
from simulation.tails.interpreter import Interpreter
from simulation.tails.loop import TimedLoop
from simulation.tails.machine import Machine
from simulation.tails.network import TimedNetwork
from simulation.tails.processes import open_timed_front, open_timed_node
from simulation.tails.topology import Topology
from winnow.cli.local.plan import LocalPlan, threads_per_node
from winnow.sizing.serving import ServingUnits
from winnow.sizing.units import UnitCosts
from winnow.v1 import answer_pb2, answer_pb2_grpc

_WARM_UP = 40
"""Number of answers that are not counted: fronts then have no latencies yet."""
_TIMEOUT = 30.0


@dataclass(frozen=True, slots=True)
class Load:
    """What clients ask, in closed loops."""

    clients: int = 1
    _: KW_ONLY
    answers: int = 1_000
    """Number of answers that are counted."""
    passages_to_read: int = 10


@dataclass(slots=True)
class Answers:
    """The answers of a simulation."""

    seconds: list[float] = field(default_factory=list)
    """Latency of each answer at its client."""
    failed: int = 0
    partial: int = 0
    """Number of answers of a part of the index."""
    processor_seconds: float = 0.0
    """Processor time of all processes for an answer."""
    calls: float = 0.0
    """Number of calls between processes for an answer, polls included."""
    hedges: float = 0.0
    """Number of hedges for an answer."""


@dataclass(frozen=True, slots=True)
class Hardware:
    """The machines of a cluster, and the network between them."""

    cores: int = 2
    """Cores of each machine."""
    network_seconds: float = 0.0001
    """Seconds of a message between two machines."""


class TailSimulation:
    """One load on one cluster."""

    def __init__(
        self,
        topology: Topology,
        load: Load,
        units: UnitCosts,
        serving: ServingUnits,
        *,
        hardware: Hardware,
        passages_per_shard: int,
        seed: int = 0,
    ) -> None:
        self._topology, self._load, self._hardware = topology, load, hardware
        self._passages = passages_per_shard
        self.loop = TimedLoop(randomness.seeded(f"loop {seed}"))  # type: ignore[abstract]
        self.loop.handover = serving.handover_ms / 1e3
        self._serving, self._rng = serving, randomness.seeded(f"costs {seed}")
        self._retrieval = retrieval_of(units, serving, passages_per_shard)
        self._network = TimedNetwork(
            self.loop,
            randomness.seeded(f"network {seed}"),
            on_machine=serving.message_ms / 1e3,
            between_machines=hardware.network_seconds,
        )
        self.addresses = Addresses(self._network)
        self._questions = randomness.seeded(f"questions {seed}")
        self._shared: tuple[Machine, Ranks] | None = None
        self._machines: list[Machine] = []
        self._registries: list[Any] = []
        self._prepared: list[asyncio.Task[None]] = []
        """Is done when a front serves."""
        self.answers = Answers()
        self.logged_errors: list[str] = []

    async def main(self) -> None:
        """Starts the cluster and asks all questions."""
        topology = self._topology
        threads = self._threads(len(topology.nodes()))
        for name, numbers in topology.nodes().items():
            process = self._process(name, Role.NODE)
            costs = self._network.costs[process]
            arguments = numbers, topology.shards, threads, costs, self._passages
            server = process.context().run(open_timed_node, fixtures.bundle(), *arguments)
            self._listen(process, server)
        for name, own in topology.groups().items():
            self._open_front(name, shards=list(map(_address, own)), is_middle=True)
        shards = [] if topology.middle_fronts else list(map(_address, topology.nodes()))
        self._open_front("front", shards=shards, fronts=list(map(_address, topology.groups())))
        client = self._process("client", Role.CLIENT)
        await self.loop.start(client, self._ask_all())

    def _threads(self, nodes: int) -> int:
        """Returns the threads of each content node, which share a machine as `winnow up` does."""
        if not self._topology.one_machine:
            return self._hardware.cores
        plan: Any = LocalPlan(fixtures.bundle().directory, fixtures.bundle().directory, "")
        return threads_per_node(plan, nodes, {}, self._hardware.cores) or self._hardware.cores

    def _process(self, name: str, role: Role) -> Process:
        process = Process(name)
        machine, ranks = self._shared or self._machine()
        if self._topology.one_machine:
            self._shared = machine, ranks
        self.loop.interpreters[process] = Interpreter(self.loop, process, machine)
        costs = Costs(role, self._serving, self._retrieval, self._rng, ranks=ranks)
        self._network.costs[process] = costs
        return process

    def _machine(self) -> tuple[Machine, Ranks]:
        machine = Machine(self.loop, self._hardware.cores, self._serving.together)
        self._machines.append(machine)
        return machine, Ranks(self._rng, self._serving.drift, self._hardware.cores)

    def _listen(self, process: Process, server: SimulatedServer) -> None:
        server.serving = True
        self.addresses.endpoints[_address(process.name)] = Endpoint(process, server)

    def _open_front(self, name: str, **options: Any) -> None:
        process = self._process(name, Role.FRONT)

        def compose() -> Any:
            return open_timed_front(
                fixtures.bundle(),
                self._network.costs[process],
                threads=self._hardware.cores,
                **options,
            )

        front, part = process.context().run(compose)
        self._registries.append(front.registry)
        self._listen(process, front.services)
        self._prepared.append(self.loop.start(process, part.prepare()))
        for task in part.tasks.values():
            self.loop.start(process, task())

    async def _ask_all(self) -> None:
        """Runs the clients, after the front serves."""
        channel: Any = self.addresses.open_channel(_address("front"))
        stub: Any = answer_pb2_grpc.AnswerServiceStub(channel)
        for part in self._prepared:
            await part
        load = self._load
        await self._run_clients(stub, Answers(), _WARM_UP)
        busy, calls, hedges = self._busy_seconds(), self.addresses.calls, self._hedges()
        await self._run_clients(stub, self.answers, load.answers)
        count = max(len(self.answers.seconds), 1)
        self.answers.processor_seconds = (self._busy_seconds() - busy) / count
        self.answers.calls = (self.addresses.calls - calls) / count
        self.answers.hedges = (self._hedges() - hedges) / count

    async def _run_clients(self, stub: Any, answers: Answers, count: int) -> None:
        numbers = iter(range(count))

        async def ask_in_turn() -> None:
            for _ in numbers:
                await self._ask(stub, answers)

        await asyncio.gather(*(ask_in_turn() for _ in range(self._load.clients)))

    async def _ask(self, stub: Any, answers: Answers) -> None:
        words = (f"w{self._questions.randrange(WORDS)}" for _ in range(3))
        passages = self._load.passages_to_read
        request = answer_pb2.AnswerRequest(
            question=" ".join(words), passages_to_read=passages, answers=passages, fresh=True
        )
        began = self.loop.time()
        try:
            reply = await stub.Answer(request, timeout=_TIMEOUT)
        except grpc.aio.AioRpcError:
            answers.failed += 1
        else:
            answers.seconds.append(self.loop.time() - began)
            answers.partial += not reply.coverage.complete

    def _busy_seconds(self) -> float:
        return sum(each.busy_seconds for each in self._machines)

    def _hedges(self) -> float:
        return sum(
            float(sample.value)
            for registry in self._registries
            for family in registry.collect()
            for sample in family.samples
            if sample.name == "winnow_front_hedges_total" and sample.labels["result"] == "sent"
        )


def _address(name: str) -> str:
    return f"{name}:9000"


def simulate(simulation: TailSimulation) -> Answers:
    """Runs a simulation to its end. Raises the first unexpected error of its processes."""
    with _running(simulation):
        simulation.loop.run(simulation.main())
        for context in simulation.loop.errors:
            raise RuntimeError(f"{context.get('message')}") from context.get("exception")
        for line in simulation.logged_errors:
            raise RuntimeError(line)
    return simulation.answers


@contextmanager
def _running(simulation: TailSimulation) -> Iterator[None]:
    def note(level: str, line: str) -> None:
        if level == "error":
            simulation.logged_errors.append(line)

    logs.set_sink(note)
    clock.set_loop(simulation.loop)
    randomness.set_source(randomness.seeded("code"))
    addresses.set_addresses(simulation.addresses)
    gc.disable()
    try:
        yield
    finally:
        simulation.loop.close()
        logs.set_sink(lambda _level, _line: None)
        clock.set_loop(None)
        randomness.set_source(None)
        addresses.set_addresses(None)
        gc.enable()
        gc.collect()
