"""The cluster of real processes on which a scenario runs, with a load and measurements."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench import processes
from bench.scenarios.load import FrontAsker, Load
from bench.scenarios.proxy import Proxy
from bench.scenarios.rows import seconds
from winnow.bundle import default_bundle
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.cli.local.ports import free_ports
from winnow.client.messages import AnswerClient

DEADLINE = 2.0
"""Seconds that every question has."""
POLL = 0.02
"""Seconds between two checks of a condition."""
LONGEST = 4
"""Times a phase's seconds after which it ends, even with fewer answers than are judged."""
_CLIENTS = 8
_WARM_UP = 20
_TIMEOUT = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """The parts of a cluster, and the questions it gets."""

    replicas: int = 1
    fronts: int = 1
    proxied: bool = False
    """Whether the front reaches the first node through a proxy."""
    stranger: bool = False
    """Whether the front also polls an address where no node is yet."""
    own_cores: bool = False
    """Whether content nodes keep to one half of the processors, and fronts and clients to the
    other, as if these were machines; all share one if there is only one.
    """
    passages: int | None = None
    """Passages that each question has read; the server's default if None."""
    least: int = 0
    """Fewest answers of a phase that is collected, within bounds."""
    client: str = ""
    """Name of the client."""
    http: bool = False
    """Whether the first front serves HTTP, too."""
    load: float = 0.5
    """Rate of the questions, as a share of the peak: some capacity stays free."""


@dataclass(slots=True, kw_only=True)
class Stage:
    """One cluster under load."""

    cluster: LocalCluster
    asking: FrontAsker
    load: Load
    questions: Sequence[str]
    front_metrics: str
    seconds: float
    """Length of each phase."""
    say: Callable[[str], None]
    """Shows progress."""
    proxy: Proxy
    stranger: str
    """HOST:PORT where no node is yet."""
    index: Path
    shape: Shape
    rate: float = 0.0
    """Questions a second."""
    marks: dict[str, float] = field(default_factory=dict)
    """Other measurements, by name."""

    async def warm(self) -> None:
        """Measures the peak rate, and sets the rate of the load."""
        self.phase("warm-up")
        for _ in range(_WARM_UP):
            await self.load.ask()
        self.phase("peak")
        self.marks["peak"] = await self.load.closed(_CLIENTS, self.seconds / 2)
        self.rate = max(self.marks["peak"], 2.0) * self.shape.load

    def phase(self, name: str) -> None:
        """Begins a phase: questions that end from now on belong to it."""
        self.load.phase = name
        self.say(name)

    async def spend(self, phase: str, times: float = 1.0) -> None:
        """Runs a phase for its seconds, `times` over."""
        self.phase(phase)
        began = self.load.now
        await asyncio.sleep(self.seconds * times)
        self.marks[f"{phase} seconds"] = self.load.now - began

    async def collect(self, phase: str) -> None:
        """Runs a phase until it has as many answers as are judged, within bounds."""
        await self.spend(phase)
        rows, began = self.load.rows[phase], self.load.now
        with contextlib.suppress(TimeoutError):
            more = (LONGEST - 1) * self.seconds
            await self.until(lambda: len(seconds(rows)) >= self.shape.least, more)
        self.marks[f"{phase} seconds"] += self.load.now - began

    def send(self, node: int, number: signal.Signals) -> None:
        """Sends a signal to a content node."""
        self.cluster.processes.send(f"node {node}", number)

    async def restart(self, process: str) -> None:
        """Starts a process again that has ended, or is about to."""
        await asyncio.to_thread(self.cluster.processes.wait, process)
        # not in that thread: children end with the thread that started them
        self.cluster.processes.again(process)

    async def restart_front(self, number: int) -> None:
        """Ends a front node by SIGTERM, starts it again, and waits until it serves."""
        name = f"front {number}" if number else "front"
        self.cluster.processes.send(name, signal.SIGTERM)
        await self.restart(name)
        async with AnswerClient(self.cluster.fronts[number]) as client:
            await self.until(client.available)

    async def until_ready(self, node: int) -> None:
        """Waits until a content node reports that it is ready."""

        async def ready() -> bool:
            try:
                page = await processes.fetch(self.cluster.node_metrics[node])
            except OSError:
                return False
            return processes.total(page, "winnow_node_ready") == 1

        await self.until(ready)

    async def until(self, holds: Callable[[], object], timeout: float = _TIMEOUT) -> None:
        """Waits until a condition holds; raises TimeoutError after `timeout` seconds."""
        async with asyncio.timeout(timeout):
            while True:
                now = holds()
                if await now if asyncio.iscoroutine(now) else now:
                    return
                await asyncio.sleep(POLL)

    async def front(self, name: str, **labels: str) -> float:
        """Returns a metric of the front node."""
        return processes.total(await processes.fetch(self.front_metrics), name, **labels)

    async def nodes(self, name: str, **labels: str) -> float:
        """Returns a metric of all content nodes, added up."""
        pages = await asyncio.gather(*map(processes.fetch, self.cluster.node_metrics))
        return sum(processes.total(page, name, **labels) for page in pages)


@contextlib.contextmanager
def _own_cores(cluster: LocalCluster) -> Iterator[None]:
    """Starts a cluster whose content nodes have processors of their own, until left."""
    every = sorted(os.sched_getaffinity(0))
    half = len(every) // 2
    nodes, others = every[half:], every[:half] or every
    try:
        os.sched_setaffinity(0, nodes)  # children inherit it
        cluster.start()
        os.sched_setaffinity(cluster.processes.pid("front"), others)
        os.sched_setaffinity(0, others)
        yield
    finally:
        os.sched_setaffinity(0, every)


@contextlib.asynccontextmanager
async def staged(
    index: Path, questions: Sequence[str], shape: Shape, lasting: float, say: Callable[[str], None]
) -> AsyncIterator[Stage]:
    """Starts a cluster, and measures its peak; phases are `lasting` seconds long."""
    front, metrics, http, proxy_port, stranger_port, *others = free_ports(4 + shape.fronts)
    proxy, stranger = Proxy(proxy_port), f"127.0.0.1:{stranger_port}"
    plan = LocalPlan(
        index,
        default_bundle(),
        f"127.0.0.1:{front}",
        f"127.0.0.1:{metrics}",
        replicas=shape.replicas,
        front=("--shards", stranger) if shape.stranger else (),
        more_fronts=tuple(f"127.0.0.1:{port}" for port in others),
        seen_as={0: proxy.address} if shape.proxied else {},
        node_metrics=True,
        linger=2.0,
        http_listen=f"127.0.0.1:{http}" if shape.http else "",
    )
    async with contextlib.AsyncExitStack() as stack:
        await stack.enter_async_context(proxy.listening())
        cluster = stack.enter_context(LocalCluster(plan))
        say("starting")
        if shape.own_cores:
            stack.enter_context(_own_cores(cluster))
        else:
            cluster.start()
        proxy.target = cluster.nodes[0]
        await cluster.wait_ready()
        client = await stack.enter_async_context(
            AnswerClient(cluster.address, client_name=shape.client)
        )
        asking = FrontAsker(client, DEADLINE, shape.passages)
        stage = Stage(
            cluster=cluster,
            asking=asking,
            load=Load(asking, questions),
            questions=questions,
            front_metrics=plan.metrics_listen,
            seconds=lasting,
            say=say,
            proxy=proxy,
            stranger=stranger,
            index=index,
            shape=shape,
        )
        await stage.warm()
        yield stage
