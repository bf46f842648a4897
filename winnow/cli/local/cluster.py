"""A front node and the content nodes of every shard, as processes of this machine."""

import asyncio
import os
import shlex
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from types import TracebackType
from typing import IO, Self

import grpc

from winnow.address import Address
from winnow.cli.local.plan import LocalPlan, commands, threads_each
from winnow.cli.local.ports import chosen, consecutive, expect_free, free_ports
from winnow.cli.local.processes import Processes
from winnow.client.messages import AnswerClient
from winnow.errors import NotLoadedError, UnavailableError
from winnow.index_directory import shard_directories
from winnow.rpc.channel import open_channel
from winnow.rpc.status import error_of
from winnow.settings.names import NAME_VARIABLE
from winnow.v1 import shard_pb2, shard_pb2_grpc

__all__ = ["LocalCluster", "LocalPlan", "not_loaded"]

_READY_SECONDS = 120.0
_POLL_SECONDS = 0.1
_INFO_TIMEOUT = 1.0
_LAST_LINES = 6
_LAST_BYTES = 1 << 16


class LocalCluster:
    """A running cluster; a context manager that leaves no process behind."""

    def __init__(self, plan: LocalPlan) -> None:
        """Raises ArtefactError if there is no index, ValueError if an address is invalid."""
        self._plan = replace(
            plan,
            listen=_with_port(plan.listen),
            more_fronts=tuple(map(_with_port, plan.more_fronts)),
            feed_listen=_with_port(plan.feed_listen),
            http_listen=_with_port(plan.http_listen),
        )
        shards = shard_directories(plan.index)
        replicas = 0 if plan.one_process else plan.replicas
        self._shards = [shard for shard in shards for _ in range(replicas)]
        self.processes = Processes()
        self._logs: dict[str, IO[bytes]] = {}
        self._commands: dict[str, list[str]] = {}
        self.fronts = list(map(_reachable, (self._plan.listen, *self._plan.more_fronts)))
        """HOST:PORT of the front nodes, as clients reach them."""
        self.feed = _reachable(self._plan.feed_listen)
        """HOST:PORT where passages can be fed; empty if nowhere."""
        self.http = _reachable(self._plan.http_listen)
        """HOST:PORT where HTTP is served; empty if nowhere."""
        self.nodes: list[str] = []
        """HOST:PORT of the content nodes: the replicas of shard 0, then those of shard 1; none in
        one process.
        """
        self.node_metrics: list[str] = []
        """HOST:PORT of the metrics of these content nodes, if the plan wants them."""

    def start(self) -> None:
        """Starts every process; does not wait until they serve.

        Raises UnavailableError if an address that was asked for is in use, and SettingsError if the
        settings file cannot be read.
        """
        plan, count = self._plan, len(self._shards)
        ports = free_ports(2 * count)
        self.nodes = [f"127.0.0.1:{port}" for port in ports[:count]]
        metrics = [Address("127.0.0.1", port) for port in ports[count:] if plan.node_metrics]
        if plan.node_metrics_from:
            metrics = consecutive(Address.parse(plan.node_metrics_from), count)
        self.node_metrics = [str(address.reachable) for address in metrics]
        listened = (plan.listen, *plan.more_fronts, plan.feed_listen, plan.http_listen)
        fixed = [Address.parse(each) for each in (*listened, plan.metrics_listen) if each]
        expect_free([*fixed, *metrics])
        self._commands = commands(
            plan, self._shards, self.nodes, list(map(str, metrics)), threads_each(plan, count or 1)
        )
        for name, arguments in self._commands.items():
            self._start(name, arguments)

    @property
    def address(self) -> str:
        """The address for clients: of the front node, or of all front nodes."""
        return self.fronts[0] if len(self.fronts) == 1 else f"ipv4:{','.join(self.fronts)}"

    async def wait_ready(self, keep: Callable[[], Awaitable[None]] | None = None) -> None:
        """Waits until every front node serves.

        Args:
            keep: called while waiting; decides about processes that end and shards that cannot be
                loaded. By default each of them is an error.

        Raises:
            UnavailableError: a process ended, a shard cannot be loaded, or it takes too long. The
                error has the last log lines.

        """
        started = time.monotonic()
        keep = keep or self._expect_all
        for address in (self._plan.health_listen or self.fronts[0], *self.fronts[1:]):
            async with AnswerClient(address, credentials=self._plan.credentials) as client:
                while not await client.available():
                    await keep()
                    if time.monotonic() - started > _READY_SECONDS:
                        raise UnavailableError(
                            f"not ready after {_READY_SECONDS:g} s{self.last_log_lines()}"
                        )
                    await asyncio.sleep(_POLL_SECONDS)
        # another process may have been serving on the port
        await keep()

    def ended(self) -> dict[str, int]:
        """Exit codes of the processes that have ended, by their names."""
        return self.processes.ended()

    def command(self, name: str) -> str:
        """The command that starts a process from a shell."""
        return shlex.join(["winnow", *self._commands[name]])

    def last_log_lines(self, name: str | None = None) -> str:
        """The last lines of a process' log, or of all logs, each after a line feed.

        Empty where logs are shown.
        """
        return "".join(
            f"\n  {each}: {line}"
            for each, log in self._logs.items()
            if name in (None, each)
            for line in _last_lines(log)
        )

    async def not_loaded(self) -> dict[str, str]:
        """Why nodes run without their shards, by the names of the nodes."""
        faults = await asyncio.gather(*map(not_loaded, self.nodes))
        return {f"node {number}": fault for number, fault in enumerate(faults) if fault}

    async def _expect_all(self) -> None:
        """Raises UnavailableError if a process has ended, or a node runs without its shard."""
        for name, code in self.ended().items():
            raise UnavailableError(f"{name} ended with exit code {code}{self.last_log_lines(name)}")
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
        # where logs are shown, all processes write to one terminal, and each names itself
        names = {NAME_VARIABLE: name} if self._plan.show_logs else {}
        self.processes.start(name, arguments, names, log=self._logs.get(name))


def _with_port(listen: str) -> str:
    """The address, with a free port if it has port 0; empty stays empty."""
    return str(chosen(Address.parse(listen))) if listen else ""


def _reachable(listen: str) -> str:
    return str(Address.parse(listen).reachable) if listen else ""


def _last_lines(log: IO[bytes]) -> list[str]:
    """Reads without moving the file's position, which is where the child writes next."""
    size = os.fstat(log.fileno()).st_size
    last = os.pread(log.fileno(), _LAST_BYTES, max(size - _LAST_BYTES, 0))
    return last.decode(errors="replace").splitlines()[-_LAST_LINES:]


async def not_loaded(address: str) -> str:
    """Why the node at HOST:PORT could not load its shard; empty if it could, or does not reply."""
    async with open_channel(address) as channel:
        stub = shard_pb2_grpc.ShardServiceStub(channel)
        try:
            await stub.GetShardInfo(shard_pb2.GetShardInfoRequest(), timeout=_INFO_TIMEOUT)
        except grpc.aio.AioRpcError as error:
            details = error.details() or ""
            fault = error_of(error.code(), details, error.trailing_metadata())
            return details if isinstance(fault, NotLoadedError) else ""
    return ""
