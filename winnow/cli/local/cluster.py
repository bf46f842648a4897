"""A front node and the content nodes of every shard, as processes of this machine."""

import asyncio
import os
import shlex
import tempfile
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from winnow.address import Address
from winnow.cli.local.cores import threads_each
from winnow.cli.local.faults import not_loaded
from winnow.cli.local.plan import LocalPlan, commands
from winnow.cli.local.ports import chosen, consecutive, expect_free, free_ports
from winnow.cli.local.processes import Processes
from winnow.client.messages import AnswerClient
from winnow.domain.shard import INDEX_FILE, MOST_SHARDS, shard_name
from winnow.errors import ArtefactError, UnavailableError
from winnow.files.vouching import FIELD, is_vouched, open_object, read_object
from winnow.settings.names import NAME_VARIABLE

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
        self._commands: dict[str, list[str]] = {}
        self._fronts = [chosen(Address.parse(each)) for each in (plan.listen, *plan.more_fronts)]
        self.fronts = [str(address.reachable) for address in self._fronts]
        """HOST:PORT of the front nodes, as clients reach them."""
        self._feed = chosen(Address.parse(plan.feed_listen)) if plan.feed_listen else None
        self.feed = str(self._feed.reachable) if self._feed else ""
        """HOST:PORT where passages can be fed; empty if nowhere."""
        self._http = chosen(Address.parse(plan.http_listen)) if plan.http_listen else None
        self.http = str(self._http.reachable) if self._http else ""
        """HOST:PORT where HTTP is served; empty if nowhere."""
        self.nodes: list[str] = []
        """HOST:PORT of the content nodes: the replicas of shard 0, then those of shard 1."""
        self.node_metrics: list[str] = []
        """HOST:PORT of the metrics of these content nodes, if the plan wants them."""

    def start(self) -> None:
        """Starts every process; does not wait until they serve.

        Raises:
            UnavailableError: an address that was asked for is in use.
            SettingsError: the settings file cannot be read.

        """
        plan, count = self._plan, len(self._shards)
        ports = free_ports(2 * count)
        self.nodes = [f"127.0.0.1:{port}" for port in ports[:count]]
        metrics = [Address("127.0.0.1", port) for port in ports[count:] if plan.node_metrics]
        if plan.node_metrics_from:
            metrics = consecutive(Address.parse(plan.node_metrics_from), count)
        self.node_metrics = [str(address.reachable) for address in metrics]
        measured = [Address.parse(plan.metrics_listen)] if plan.metrics_listen else []
        others = [each for each in (self._feed, self._http) if each]
        expect_free([*self._fronts, *others, *measured, *metrics])
        fronts = list(map(str, self._fronts))
        addresses = list(map(str, metrics))
        threads = threads_each(plan, count)
        feed, http = str(self._feed or ""), str(self._http or "")
        started = commands(plan, self._shards, fronts, self.nodes, addresses, threads, feed, http)
        self._commands = started
        for name, arguments in started.items():
            self._start(name, arguments)

    @property
    def address(self) -> str:
        """What a client is given: the front node, or all of them."""
        return self.fronts[0] if len(self.fronts) == 1 else f"ipv4:{','.join(self.fronts)}"

    async def wait_ready(
        self,
        look: Callable[[], None] = lambda: None,
        keep: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """Waits until every front node serves; `look` is called now and then.

        So is `keep`, which decides what to do about processes that end and shards that cannot be
        loaded. Without it each is an error.

        Raises:
            UnavailableError: a process ended, a shard cannot be loaded, or it takes too long; says
                the last log lines.

        """
        started = time.monotonic()
        keep = keep or self._expect_all
        told = [self._plan.health_listen or self.fronts[0], *self.fronts[1:]]
        for address in told:
            async with AnswerClient(address, credentials=self._plan.credentials) as client:
                while not await client.serving():
                    look()
                    await keep()
                    if time.monotonic() - started > _READY_SECONDS:
                        raise UnavailableError(
                            f"not ready after {_READY_SECONDS:g} s{self.last_words()}"
                        )
                    await asyncio.sleep(_LOOK_SECONDS)
        # the port may have been somebody else's all along
        await keep()

    def ended(self) -> dict[str, int]:
        """Exit codes of the processes that have ended, by their names."""
        return self.processes.ended()

    def again(self, name: str) -> None:
        """Starts a process that has ended once more."""
        self.processes.again(name)

    def pid(self, name: str) -> int:
        """The id of a process."""
        return self.processes.pid(name)

    def by_hand(self, name: str) -> str:
        """The command that starts a process from a shell."""
        return shlex.join(["winnow", *self._commands[name]])

    def last_words(self, name: str | None = None) -> str:
        """The last lines of a process' log, or of every process'; empty where logs are shown."""
        lines = []
        for each, log in self._logs.items():
            if name in (None, each):
                lines += [f"  {each}: {line}" for line in _last_lines(log)]
        return "".join(f"\n{line}" for line in lines)

    async def not_loaded(self) -> dict[str, str]:
        """What nodes that run without their shards say of that, by their names."""
        faults = await asyncio.gather(*map(not_loaded, self.nodes))
        return {f"node {number}": fault for number, fault in enumerate(faults) if fault}

    async def _expect_all(self) -> None:
        """Raises UnavailableError if a process has ended, or a node runs without its shard."""
        for name, code in self.ended().items():
            raise UnavailableError(f"{name} ended with exit code {code}{self.last_words(name)}")
        for name, fault in (await self.not_loaded()).items():
            raise UnavailableError(f"{name} could not load its shard: {fault}")

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
        # where logs are shown, all processes write to one terminal; of kept ones we know whose
        names = {NAME_VARIABLE: name} if self._plan.show_logs else {}
        self.processes.start(name, arguments, names, log=self._logs.get(name))


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
    if not path.is_file() and index.is_dir() and (index.parent / INDEX_FILE).is_file():
        raise ArtefactError(f"{index} is a part of an index: name {index.parent}")
    if not path.is_file():
        raise ArtefactError(
            f"{index} is no index (there is no {INDEX_FILE} in it): build one with "
            "`winnow index build`"
        )
    text, manifest = read_object(open_object(path, "an index"))
    if FIELD in manifest and not is_vouched(text, manifest):
        raise ArtefactError(f"{path} is damaged: it is not as it was written; copy it again")
    shards = manifest.get("shards")
    if type(shards) is not int or not 1 <= shards <= MOST_SHARDS:
        raise ArtefactError(
            f"{path} is damaged: {shards!r} is no number of shards from 1 to "
            f"{MOST_SHARDS}; copy it again, or build the index again"
        )
    return [index / shard_name(shard, shards) for shard in range(shards)]
