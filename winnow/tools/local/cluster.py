"""A front node and the content nodes of every shard, as processes of this machine."""

import asyncio
import os
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from winnow.address import Address
from winnow.client.messages import AnswerClient
from winnow.domain.layout import INDEX_FILE, MOST_SHARDS, shard_name
from winnow.errors import ArtefactError, UnavailableError
from winnow.files.vouching import read_object
from winnow.tools.local.faults import not_loaded
from winnow.tools.local.plan import LocalPlan, commands
from winnow.tools.local.ports import chosen, consecutive, expect_free, free_ports
from winnow.tools.local.processes import Processes

__all__ = ["LocalCluster", "LocalPlan", "shard_directories"]

_READY_SECONDS = 120.0
_LOOK_SECONDS = 0.1
_LAST_LINES = 6
_LAST_BYTES = 1 << 16


class LocalCluster:
    """A running cluster; a context manager that leaves no process behind."""

    def __init__(self, plan: LocalPlan) -> None:
        """Raises ArtefactError if there is no index, ValueError if an address is none."""
        self._plan = plan
        self._shards = [s for s in shard_directories(plan.index) for _ in range(plan.replicas)]
        self.processes = Processes()
        self._logs: dict[str, IO[bytes]] = {}
        self._fronts = [chosen(Address.parse(each)) for each in (plan.listen, *plan.more_fronts)]
        self.fronts = [str(address.reachable) for address in self._fronts]
        """HOST:PORT of the front nodes, as clients reach them."""
        self.nodes: list[str] = []
        """HOST:PORT of the content nodes: the replicas of shard 0, then those of shard 1."""
        self.node_metrics: list[str] = []
        """HOST:PORT of the metrics of these content nodes, if the plan wants them."""

    def start(self) -> None:
        """Starts every process; does not wait until they serve.

        Raises:
            UnavailableError: an address that was asked for is in use.

        """
        plan, count = self._plan, len(self._shards)
        ports = free_ports(2 * count)
        self.nodes = [f"127.0.0.1:{port}" for port in ports[:count]]
        metrics = [Address("127.0.0.1", port) for port in ports[count:] if plan.node_metrics]
        if plan.node_metrics_from:
            metrics = consecutive(Address.parse(plan.node_metrics_from), count)
        self.node_metrics = [str(address.reachable) for address in metrics]
        measured = [Address.parse(plan.metrics_listen)] if plan.metrics_listen else []
        expect_free([*self._fronts, *measured, *metrics])
        fronts = list(map(str, self._fronts))
        started = commands(plan, self._shards, fronts, self.nodes, list(map(str, metrics)))
        for name, arguments in started.items():
            self._start(name, arguments)

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
        self.processes.start(name, arguments, log=self._logs.get(name))

    def _said(self, name: str | None = None) -> str:
        """The last lines of a process' log, or of every process'."""
        lines = []
        for each, log in self._logs.items():
            if name in (None, each):
                lines += [f"  {each}: {line}" for line in _last_lines(log)]
        return "".join(f"\n{line}" for line in lines)


def _last_lines(log: IO[bytes]) -> list[str]:
    """Read without moving the position, which is also where the child writes next."""
    size = os.fstat(log.fileno()).st_size
    last = os.pread(log.fileno(), _LAST_BYTES, max(size - _LAST_BYTES, 0))
    return last.decode(errors="replace").splitlines()[-_LAST_LINES:]


def shard_directories(index: Path) -> list[Path]:
    """The shards of an index, in order.

    Raises:
        ArtefactError: `index` is no index.

    """
    path = index / INDEX_FILE
    if not path.is_file():
        raise ArtefactError(
            f"{index} is no index (there is no {INDEX_FILE} in it): build one with "
            "`winnow index build`"
        )
    _, manifest = read_object(path, "an index")
    shards = manifest.get("shards")
    if not isinstance(shards, int) or not 1 <= shards <= MOST_SHARDS:
        raise ArtefactError(
            f"{path} is damaged: {shards!r} is no number of shards from 1 to "
            f"{MOST_SHARDS}; copy it again, or build the index again"
        )
    return [index / shard_name(shard, shards) for shard in range(shards)]
