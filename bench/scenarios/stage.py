"""The stage of a scenario: a cluster of real processes, the load on it, and measurements."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench import processes
from bench.scenarios.load import FrontAsker, Load
from bench.scenarios.measurements import latencies
from bench.scenarios.proxy import Proxy
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.cli.local.ports import free_ports
from winnow.client.messages import AnswerClient
from winnow.packaged import default_bundle

DEADLINE = 2.0
"""Deadline of every question, in seconds."""
POLL = 0.02
"""Seconds between two checks of a condition."""
MAX_PHASE_FACTOR = 4
"""Maximum duration of a phase that waits for answers, as a multiple of `Stage.seconds`."""
_CLIENTS = 8
_WARM_UP = 20
_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Settings of a scenario's cluster, and of the load on the cluster."""

    replicas: int = 1
    fronts: int = 1
    proxied: bool = False
    """Whether the front reaches the first node through a proxy."""
    foreign_node: bool = False
    """Whether the front also polls `Stage.foreign_address`, where a procedure starts a node."""
    separate_cores: bool = False
    """Whether content nodes run on one half of the cores, and fronts and clients on the other half.

    The halves stand for separate machines. A single core is shared.
    """
    passages: int | None = None
    """Passages to read for each question; the server's default if None."""
    min_answers: int = 0
    """Number of answers for which `Stage.run_until_enough_answers` waits."""
    client: str = ""
    """Name of the client that asks the questions."""
    http: bool = False
    """Whether the first front also serves HTTP."""
    load: float = 0.5
    """Rate of the questions, as a share of the peak rate."""


@dataclass(slots=True, kw_only=True)
class Stage:
    """One cluster under load, with its measurements."""

    cluster: LocalCluster
    asker: FrontAsker
    load: Load
    questions: Sequence[str]
    front_metrics: str
    seconds: float
    """Usual duration of a phase."""
    show_progress: Callable[[str], None]
    proxy: Proxy
    foreign_address: str
    """HOST:PORT for a node that does not belong to the index."""
    index: Path
    setup: Setup
    rate: float = 0.0
    """Rate of the load, in questions per second."""
    values: dict[str, float] = field(default_factory=dict)
    """Measured values by name, besides the outcomes of `load`."""

    async def measure_peak(self) -> None:
        """Measures the peak rate (value `peak`), and sets the rate of the load."""
        self.begin_phase("warm-up")
        for _ in range(_WARM_UP):
            await self.load.ask()
        self.begin_phase("peak")
        self.values["peak"] = await self.load.run_closed_loop(_CLIENTS, self.seconds / 2)
        self.rate = max(self.values["peak"], 2.0) * self.setup.load

    def begin_phase(self, name: str) -> None:
        """Starts a phase. A question counts in the phase in which it ends."""
        self.load.phase = name
        self.show_progress(name)

    async def run_phase(self, phase: str, duration_factor: float = 1.0) -> None:
        """Runs a phase, and sets the value `PHASE seconds`.

        The phase takes `duration_factor` times its usual duration.
        """
        self.begin_phase(phase)
        started = self.load.now
        await asyncio.sleep(self.seconds * duration_factor)
        self.values[f"{phase} seconds"] = self.load.now - started

    async def run_until_enough_answers(self, phase: str) -> None:
        """Runs a phase until it has enough answers.

        The phase takes at least its usual duration, and at most `MAX_PHASE_FACTOR` times as long.
        """
        await self.run_phase(phase)
        outcomes, started = self.load.outcomes[phase], self.load.now
        with contextlib.suppress(TimeoutError):
            more = (MAX_PHASE_FACTOR - 1) * self.seconds
            await self.wait_until(lambda: len(latencies(outcomes)) >= self.setup.min_answers, more)
        self.values[f"{phase} seconds"] += self.load.now - started

    def send_signal(self, node: int, number: signal.Signals) -> None:
        """Sends a signal to a content node."""
        self.cluster.processes.send(f"node {node}", number)

    async def restart(self, process: str) -> None:
        """Waits for the end of a process, and starts it again."""
        await asyncio.to_thread(self.cluster.processes.wait, process)
        # started here, because a child ends with the thread that started it
        self.cluster.processes.restart(process)

    async def restart_front(self, number: int) -> None:
        """Restarts a front node by SIGTERM, and waits until it serves."""
        name = f"front {number}" if number else "front"
        self.cluster.processes.send(name, signal.SIGTERM)
        await self.restart(name)
        async with AnswerClient(self.cluster.fronts[number]) as client:
            await self.wait_until(client.available)

    async def wait_ready(self, node: int) -> None:
        """Waits until a content node reports that it is ready."""

        async def ready() -> bool:
            try:
                page = await processes.fetch_metrics(self.cluster.node_metrics[node])
            except OSError:
                return False
            return processes.metric_sum(page, "winnow_node_ready") == 1

        await self.wait_until(ready)

    async def wait_until(self, holds: Callable[[], object], timeout: float = _TIMEOUT) -> None:
        """Waits until a condition holds; raises TimeoutError after `timeout` seconds."""
        async with asyncio.timeout(timeout):
            while True:
                now = holds()
                if await now if asyncio.iscoroutine(now) else now:
                    return
                await asyncio.sleep(POLL)

    async def front_metric(self, name: str, **labels: str) -> float:
        """Returns the value of a metric of the front node."""
        return processes.metric_sum(
            await processes.fetch_metrics(self.front_metrics), name, **labels
        )

    async def nodes_metric(self, name: str, **labels: str) -> float:
        """Returns the sum of a metric over all content nodes."""
        pages = await asyncio.gather(*map(processes.fetch_metrics, self.cluster.node_metrics))
        return sum(processes.metric_sum(page, name, **labels) for page in pages)


@contextlib.contextmanager
def _separate_cores(cluster: LocalCluster) -> Iterator[None]:
    """Starts a cluster with content nodes on one half of the cores and fronts on the other half."""
    cores = sorted(os.sched_getaffinity(0))
    half = len(cores) // 2
    nodes, other_cores = cores[half:], cores[:half] or cores
    try:
        os.sched_setaffinity(0, nodes)  # children inherit the affinity
        cluster.start()
        os.sched_setaffinity(cluster.processes.pid("front"), other_cores)
        os.sched_setaffinity(0, other_cores)
        yield
    finally:
        os.sched_setaffinity(0, cores)


@contextlib.asynccontextmanager
async def open_stage(
    index: Path,
    questions: Sequence[str],
    setup: Setup,
    seconds: float,
    show_progress: Callable[[str], None],
) -> AsyncIterator[Stage]:
    """Starts a cluster and measures its peak rate. `seconds` is the usual duration of a phase."""
    front, metrics, http, proxy_port, foreign_port, *more_fronts = free_ports(4 + setup.fronts)
    proxy, foreign_address = Proxy(proxy_port), f"127.0.0.1:{foreign_port}"
    plan = LocalPlan(
        index,
        default_bundle(),
        f"127.0.0.1:{front}",
        f"127.0.0.1:{metrics}",
        replicas=setup.replicas,
        front=("--shards", foreign_address) if setup.foreign_node else (),
        more_fronts=tuple(f"127.0.0.1:{port}" for port in more_fronts),
        proxied_nodes={0: proxy.address} if setup.proxied else {},
        node_metrics=True,
        drain_linger=2.0,
        http_listen=f"127.0.0.1:{http}" if setup.http else "",
    )
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(proxy.listening())
        cluster = stack.enter_context(LocalCluster(plan))
        show_progress("starting")
        if setup.separate_cores:
            stack.enter_context(_separate_cores(cluster))
        else:
            cluster.start()
        proxy.target = cluster.nodes[0]
        await cluster.wait_ready()
        client = await stack.enter_async_context(
            AnswerClient(cluster.address, client_name=setup.client)
        )
        asker = FrontAsker(client, DEADLINE, setup.passages)
        stage = Stage(
            cluster=cluster,
            asker=asker,
            load=Load(asker, questions),
            questions=questions,
            front_metrics=plan.metrics_listen,
            seconds=seconds,
            show_progress=show_progress,
            proxy=proxy,
            foreign_address=foreign_address,
            index=index,
            setup=setup,
        )
        await stage.measure_peak()
        yield stage
