"""Where a scenario plays: a cluster of real processes, a load on it, and what was measured."""

import asyncio
import contextlib
import os
import signal
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from bench.common import gauges
from bench.faults.judge import Observed, seconds
from bench.faults.load import FrontAsker, Load
from bench.faults.proxy import Proxy
from winnow.bundle import default_bundle
from winnow.cli.local.cluster import LocalCluster, LocalPlan
from winnow.cli.local.ports import free_ports
from winnow.client.messages import AnswerClient

DEADLINE = 2.0
"""Seconds that every question has."""
_CLIENTS = 8
_SHARE = 0.5
"""Of what can be answered, what is asked: there is room left, and yet always work in hand."""
_WARM_UP = 20
LOOK = 0.02
"""Seconds between two looks at what is waited for."""
_PATIENCE = 60.0
_LONGEST = 4
"""Times a phase's seconds, after which it ends even with fewer answers than are judged."""


@dataclass(frozen=True, slots=True)
class Shape:
    """What a cluster is made of, and what it is asked."""

    replicas: int = 1
    fronts: int = 1
    proxied: bool = False
    """Whether the front reaches the first node through a proxy."""
    stranger: bool = False
    """Whether the front also looks at an address where nobody is yet."""
    apart: bool = False
    """Whether content nodes keep to one half of the processors, and front and clients to the other,
    as if those were machines; all share one if there is only one.
    """
    passages: int | None = None
    """That each question has read; the server's default if None."""
    least: int = 0
    """Answers that a phase lasts for where they are collected, within bounds."""
    client: str = ""
    """The name under which is asked."""
    http: bool = False
    """Whether the first front serves HTTP, too."""


@dataclass(slots=True)
class Stage:
    """One cluster under load."""

    cluster: LocalCluster
    asking: FrontAsker
    load: Load
    front_metrics: str
    seconds: float
    """That each phase lasts."""
    say: Callable[[str], None]
    proxy: Proxy
    stranger: str
    """HOST:PORT where nobody is yet."""
    index: Path
    least: int = 0
    """Answers that phases are to collect."""
    rate: float = 0.0
    marks: dict[str, float] = field(default_factory=dict)

    @property
    def seen(self) -> Observed:
        """What was seen so far."""
        return Observed(self.load.rows, self.marks)

    async def warm(self) -> None:
        """Finds out how much can be answered; half of that is asked from now on."""
        self.phase("warm-up")
        for _ in range(_WARM_UP):
            await self.load.ask()
        self.phase("peak")
        self.marks["peak"] = await self.load.closed(_CLIENTS, self.seconds / 2)
        self.rate = max(self.marks["peak"] * _SHARE, 1.0)

    def phase(self, name: str) -> None:
        """From now on questions end in this phase."""
        self.load.phase = name
        self.say(name)

    async def spend(self, phase: str, times: float = 1.0) -> None:
        """Lets a phase last."""
        self.phase(phase)
        began = self.load.now
        await asyncio.sleep(self.seconds * times)
        self.marks[f"{phase} seconds"] = self.load.now - began

    async def collect(self, phase: str) -> None:
        """Lets a phase last, and on until it has as many answers as it needs, within bounds."""
        await self.spend(phase)
        rows, began = self.load.rows[phase], self.load.now
        with contextlib.suppress(TimeoutError):
            more = (_LONGEST - 1) * self.seconds
            await self.until(lambda: len(seconds(rows)) >= self.least, more)
        self.marks[f"{phase} seconds"] += self.load.now - began

    def send(self, node: int, number: signal.Signals) -> None:
        """Sends a signal to a content node."""
        self.cluster.processes.send(f"node {node}", number)

    async def restart(self, node: int) -> None:
        """Starts a content node that has ended, or is about to, once more."""
        await self._again(f"node {node}")

    async def restart_front(self, number: int) -> None:
        """Ends a front node in order, starts it once more, and waits until it serves."""
        name = f"front {number}" if number else "front"
        self.cluster.processes.send(name, signal.SIGTERM)
        await self._again(name)
        async with AnswerClient(self.cluster.fronts[number]) as client:
            await self.until(client.serving)

    async def _again(self, process: str) -> None:
        await asyncio.to_thread(self.cluster.processes.wait, process)
        # here and not in that thread: children end with the thread that started them
        self.cluster.processes.again(process)

    async def until_ready(self, node: int) -> None:
        """Waits until a content node says that it is."""

        async def ready() -> bool:
            try:
                page = await gauges.fetch(self.cluster.node_metrics[node])
            except OSError:
                return False
            return gauges.total(page, "winnow_node_ready") == 1

        await self.until(ready)

    async def until(self, holds: Callable[[], object], patience: float = _PATIENCE) -> None:
        """Waits until something holds; raises TimeoutError after `patience` seconds."""
        async with asyncio.timeout(patience):
            while True:
                now = holds()
                if await now if asyncio.iscoroutine(now) else now:
                    return
                await asyncio.sleep(LOOK)

    async def front(self, name: str, **labels: str) -> float:
        """A metric of the front node."""
        return gauges.total(await gauges.fetch(self.front_metrics), name, **labels)

    async def nodes(self, name: str, **labels: str) -> float:
        """A metric of all content nodes together."""
        return await gauges.totals(self.cluster.node_metrics, name, **labels)

    def memory(self) -> int:
        """Bytes that all processes hold."""
        return gauges.memory(self.cluster.processes.pids())


@contextlib.contextmanager
def _apart(cluster: LocalCluster) -> Iterator[None]:
    """Starts a cluster of which nodes have other processors than all else, until left."""
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
    """A cluster that serves, and has been asked a few questions; phases are `lasting` seconds."""
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
        if shape.apart:
            stack.enter_context(_apart(cluster))
        else:
            cluster.start()
        proxy.target = cluster.nodes[0]
        await cluster.wait_ready()
        client = await stack.enter_async_context(AnswerClient(cluster.address, shape.client))
        asking = FrontAsker(client, DEADLINE, shape.passages)
        load = Load(asking, questions)
        stage = Stage(
            cluster,
            asking,
            load,
            plan.metrics_listen,
            lasting,
            say,
            proxy,
            stranger,
            index,
            shape.least,
        )
        await stage.warm()
        yield stage
