"""A front node and the content nodes of every shard, as processes of this machine."""

import asyncio
import json
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from winnow.client.messages import AnswerClient
from winnow.domain.layout import INDEX_FILE, shard_name
from winnow.errors import ArtefactError, UnavailableError
from winnow.tools.local.faults import not_loaded
from winnow.tools.local.ports import free_ports
from winnow.tools.local.processes import Processes

_READY_SECONDS = 120.0
_LOOK_SECONDS = 0.1
_LAST_LINES = 6


@dataclass(frozen=True, slots=True)
class LocalPlan:
    """What to start. Ports of content nodes are chosen freely."""

    index: Path
    bundle: Path
    listen: str
    metrics_listen: str = ""
    reader_threads: int | None = None
    replicas: int = 1
    """Content nodes per shard."""
    front: tuple[str, ...] = ()
    """Further flags of the front node."""
    node: tuple[str, ...] = ()
    """Further flags of every content node."""
    more_fronts: tuple[str, ...] = ()
    """HOST:PORT of further front nodes."""
    seen_as: Mapping[int, str] = field(default_factory=dict)
    """HOST:PORT under which the front finds a node, by its number, where that is not its own."""
    node_metrics: bool = False
    """Whether content nodes serve metrics, on ports chosen freely."""
    linger: float = 0.0
    """Seconds that a process serves on after SIGTERM. Where all end together there is nobody to
    notice that one leaves.
    """
    show_logs: bool = False


class LocalCluster:
    """A running cluster; a context manager that leaves no process behind."""

    def __init__(self, plan: LocalPlan) -> None:
        """Raises ArtefactError if there is no index."""
        self._plan = plan
        self._shards = shard_directories(plan.index)
        self.processes = Processes()
        self._logs: dict[str, IO[bytes]] = {}
        listening = (plan.listen, *plan.more_fronts)
        self.fronts = [address.replace("0.0.0.0", "127.0.0.1") for address in listening]  # noqa: S104
        """Addresses of the front nodes."""
        self.nodes: list[str] = []
        """Addresses of the content nodes: the replicas of shard 0, then those of shard 1."""
        self.node_metrics: list[str] = []
        """HOST:PORT of the metrics of these content nodes, if the plan wants them."""

    def start(self) -> None:
        """Starts every process; does not wait until they serve."""
        plan = self._plan
        served = [shard for shard in self._shards for _ in range(plan.replicas)]
        ports = [f"127.0.0.1:{port}" for port in free_ports(2 * len(served))]
        self.nodes = ports[: len(served)]
        self.node_metrics = ports[len(served) :] if plan.node_metrics else []
        for number, (shard, address) in enumerate(zip(served, self.nodes, strict=True)):
            threads = ["--reader-threads", str(plan.reader_threads)] if plan.reader_threads else []
            metrics = ["--metrics-listen", self.node_metrics[number]] if plan.node_metrics else []
            self._start(
                f"node {number}",
                [
                    "node",
                    "--shard",
                    str(shard),
                    "--listen",
                    address,
                    *threads,
                    *metrics,
                    *plan.node,
                ],
            )
        seen = [plan.seen_as.get(number, address) for number, address in enumerate(self.nodes)]
        shards = [flag for address in seen for flag in ("--shards", address)]
        metrics = ["--metrics-listen", plan.metrics_listen] if plan.metrics_listen else []
        self._start("front", ["front", "--listen", plan.listen, *shards, *metrics, *plan.front])
        for number, listen in enumerate(plan.more_fronts, 1):
            self._start(f"front {number}", ["front", "--listen", listen, *shards, *plan.front])

    @property
    def address(self) -> str:
        """What a client is given: the front node, or all of them."""
        return self.fronts[0] if len(self.fronts) == 1 else f"ipv4:{','.join(self.fronts)}"

    async def wait_ready(self, look: Callable[[], None] = lambda: None) -> None:
        """Waits until every front node serves; `look` is called now and then.

        Raises:
            UnavailableError: a process ended, a shard cannot be loaded, or it takes too long; says
                the last log lines.

        """
        started = time.monotonic()
        for address in self.fronts:
            async with AnswerClient(address) as client:
                while not await client.serving():
                    look()
                    self.check()
                    await self._check_shards()
                    if time.monotonic() - started > _READY_SECONDS:
                        raise UnavailableError(
                            f"not ready after {_READY_SECONDS:g} s{self._said()}"
                        )
                    await asyncio.sleep(_LOOK_SECONDS)
        # the port may have been somebody else's all along
        self.check()

    def check(self) -> None:
        """Raises UnavailableError if a process has ended."""
        for name, code in self.processes.ended().items():
            raise UnavailableError(f"{name} ended with exit code {code}{self._said(name)}")

    async def _check_shards(self) -> None:
        """Raises UnavailableError if a node runs without its shard."""
        for number, fault in enumerate(await asyncio.gather(*map(not_loaded, self.nodes))):
            if fault:
                raise UnavailableError(f"node {number} could not load its shard: {fault}")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.processes.stop()
        for log in self._logs.values():
            log.close()

    def _start(self, name: str, arguments: list[str]) -> None:
        if not self._plan.show_logs:
            self._logs[name] = tempfile.TemporaryFile()  # noqa: SIM115 (closed on exit)
        common = ["--bundle", str(self._plan.bundle), "--drain-linger", str(self._plan.linger)]
        self.processes.start(name, [*arguments, *common], log=self._logs.get(name))

    def _said(self, name: str | None = None) -> str:
        """The last lines of a process' log, or of every process'."""
        lines = []
        for each, log in self._logs.items():
            if name in (None, each):
                log.seek(0)
                last = log.read().decode(errors="replace").splitlines()[-_LAST_LINES:]
                lines += [f"  {each}: {line}" for line in last]
        return "".join(f"\n{line}" for line in lines)


def shard_directories(index: Path) -> list[Path]:
    """The shards of an index, in order.

    Raises:
        ArtefactError: `index` is no index.

    """
    try:
        shards = int(json.loads((index / INDEX_FILE).read_text(encoding="utf-8"))["shards"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise ArtefactError(
            f"{index} is no index ({error}): build one with `winnow index build`"
        ) from error
    return [index / shard_name(shard, shards) for shard in range(shards)]
