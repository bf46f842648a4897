"""Runs front nodes and the content nodes of every shard as processes of this machine."""

import asyncio
import os
import shlex
import tempfile
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import IO, Self

import grpc

from winnow.address import Address
from winnow.cli.local.plan import LocalPlan, process_commands, shards_of_nodes, threads_per_node
from winnow.cli.local.ports import consecutive_addresses, free_ports, require_free, with_free_port
from winnow.cli.local.processes import Processes
from winnow.client.messages import AnswerClient
from winnow.errors import UnavailableError
from winnow.index_directory import shard_directories
from winnow.quoting import many
from winnow.rpc.channel import open_channel
from winnow.settings.names import NAME_VARIABLE
from winnow.v1 import shard_pb2, shard_pb2_grpc

__all__ = ["LoadFailure", "LocalCluster", "LocalPlan", "load_failure"]

_READY_SECONDS = 120.0
"""Seconds in which fronts find shards that are loaded. Loading takes longer for a large index."""
_REPORT_SECONDS = 30.0
"""Seconds between two messages that tell what the start waits for."""
_POLL_SECONDS = 0.1
_INFO_TIMEOUT = 1.0
_LOG_TAIL_LINES = 6
_LOG_TAIL_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class LoadFailure:
    """Why a content node could not load shards."""

    reason: str
    of_all: bool = True
    """Whether all shards of the node failed to load; false while another shard loads or serves."""


class LocalCluster:
    """A context manager that runs a cluster, and ends all of its processes."""

    def __init__(self, plan: LocalPlan) -> None:
        """Raises ArtefactError if there is no index, ValueError if an address is invalid."""
        self._plan = replace(
            plan,
            listen=_with_port(plan.listen),
            more_fronts=tuple(map(_with_port, plan.more_fronts)),
            feed_listen=_with_port(plan.feed_listen),
            http_listen=_with_port(plan.http_listen),
            health_listen=_with_port(plan.health_listen),
        )
        replicas = 0 if plan.one_process else plan.replicas
        self._shards = shards_of_nodes(shard_directories(plan.index), plan.nodes, replicas)
        self.processes = Processes()
        self._logs: dict[str, IO[bytes]] = {}
        self._commands: dict[str, list[str]] = {}
        self.fronts = list(map(_reachable, (self._plan.listen, *self._plan.more_fronts)))
        """HOST:PORT of each front node, for clients."""
        self.feed = _reachable(self._plan.feed_listen)
        """HOST:PORT of the feeding port; empty if there is none."""
        self.http = _reachable(self._plan.http_listen)
        """HOST:PORT of HTTP; empty if there is none."""
        self.nodes: list[str] = []
        """HOST:PORT of the content nodes; replicas with the same shards follow each other.

        Empty if one process serves the index.
        """
        self.node_metrics: list[str] = []
        """HOST:PORT of the metrics of each content node; empty if the plan has none."""

    def start(self) -> None:
        """Starts every process; does not wait until they serve.

        Raises UnavailableError if an address of the plan is in use, and SettingsError if the
        settings file cannot be read.
        """
        plan, count = self._plan, len(self._shards)
        ports = free_ports(2 * count if plan.node_metrics else count)
        self.nodes = [f"127.0.0.1:{port}" for port in ports[:count]]
        metrics = [Address("127.0.0.1", port) for port in ports[count:]]
        if plan.first_node_metrics:
            addresses = consecutive_addresses(Address.parse(plan.first_node_metrics), count)
            metrics = list(map(with_free_port, addresses))
        self.node_metrics = [str(address.reachable) for address in metrics]
        fixed = [
            *((each, "--listen") for each in (plan.listen, *plan.more_fronts)),
            (plan.feed_listen, "--feed-listen"),
            (plan.http_listen, "--http-listen"),
            (plan.metrics_listen, "--metrics-listen"),
            (plan.health_listen, "--health-listen of the front node"),
        ]
        require_free(
            *((Address.parse(each), flag) for each, flag in fixed if each),
            *((each, "--metrics-listen of content nodes") for each in metrics),
        )
        self._commands = process_commands(
            plan,
            self._shards,
            self.nodes,
            list(map(str, metrics)),
            threads_per_node(plan, count or 1),
        )
        for name, arguments in self._commands.items():
            self._start(name, arguments)

    @property
    def address(self) -> str:
        """The address for clients: HOST:PORT of the front node, or a target of all front nodes."""
        return self.fronts[0] if len(self.fronts) == 1 else f"ipv4:{','.join(self.fronts)}"

    async def wait_ready(
        self,
        check: Callable[[], Awaitable[None]] | None = None,
        say: Callable[[str], None] = lambda _: None,
    ) -> None:
        """Waits until every front node serves.

        Args:
            check: called repeatedly; handles processes that ended and shards that failed to load.
                By default each of them is an error.
            say: called every 30 seconds with a line that tells what it waits for.

        Raises:
            UnavailableError: a process ended, a shard failed to load, or the cluster was not ready
                in time, although no shard was still loading. The message has the last log lines.

        """
        began = started = reported = time.monotonic()
        check = check or self._check_all
        for address in (self._plan.health_listen or self.fronts[0], *self.fronts[1:]):
            async with AnswerClient(address, credentials=self._plan.credentials) as client:
                while not await client.available():
                    await check()
                    now = time.monotonic()
                    if now - reported > _REPORT_SECONDS:
                        reported = now
                        waits = await self._starting() or [f"the front node at {address}"]
                        say(f"still starting after {now - began:.0f} s: {'; '.join(waits)}")
                    if now - started > _READY_SECONDS:
                        if not await self._starting():
                            raise UnavailableError(
                                f"the cluster was not ready after {_READY_SECONDS:g} s"
                                f"{self.last_log_lines()}"
                            )
                        started = time.monotonic()
                    await asyncio.sleep(_POLL_SECONDS)
        # otherwise the server of another program on this port would count as ready
        await check()

    def command(self, name: str) -> str:
        """The shell command that starts a process."""
        return shlex.join(["winnow", *self._commands[name]])

    def last_log_lines(self, name: str | None = None) -> str:
        """The last log lines of a process, or of all processes, each after a line feed.

        Empty if the plan shows logs.
        """
        return "".join(
            f"\n  {each}: {line}"
            for each, log in self._logs.items()
            if name in (None, each)
            for line in _read_tail(log)
        )

    async def load_failures(self) -> dict[str, LoadFailure]:
        """The failures of content nodes to load shards, by name of the node."""
        failures = await asyncio.gather(*map(load_failure, self.nodes))
        return {f"node {number}": failure for number, failure in enumerate(failures) if failure}

    async def _check_all(self) -> None:
        """Raises UnavailableError if a process has ended, or a node failed to load a shard."""
        for name, code in self.processes.exit_codes().items():
            raise UnavailableError(f"{name} ended with exit code {code}{self.last_log_lines(name)}")
        for name, failure in (await self.load_failures()).items():
            raise UnavailableError(f"{name} could not load its shards: {failure.reason}")

    async def _starting(self) -> list[str]:
        """Describes each process that is still starting or loads a shard."""
        if not self.nodes:  # the one process replies once it has loaded its shards, or ends
            return [f"the server loads and verifies the shards of {self._plan.index}"]
        replies = await asyncio.gather(*map(list_shards, self.nodes))
        described = (_start_of(f"node {number}", each) for number, each in enumerate(replies))
        return [each for each in described if each]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.processes.stop()
        for log in self._logs.values():
            log.close()

    def _start(self, name: str, arguments: list[str]) -> None:
        if not self._plan.show_logs:
            self._logs[name] = tempfile.TemporaryFile()  # noqa: SIM115 (closed on exit)
        # shown logs of all processes are mixed: each line needs the name of its process
        environment = {NAME_VARIABLE: name} if self._plan.show_logs else {}
        self.processes.start(name, arguments, environment, log=self._logs.get(name))


def _with_port(listen: str) -> str:
    """The address, with a free port instead of port 0; empty stays empty."""
    return str(with_free_port(Address.parse(listen))) if listen else ""


def _reachable(listen: str) -> str:
    return str(Address.parse(listen).reachable) if listen else ""


def _start_of(name: str, reply: shard_pb2.ListShardsResponse | None) -> str:
    """Describes a content node that is still starting; empty once it has loaded all its shards."""
    if reply is None:
        return f"{name} does not reply yet"
    loading = sum(fault.is_loading for fault in reply.faults)
    return f"{name} loads and verifies {many(loading, 'shard')}" if loading else ""


def _read_tail(log: IO[bytes]) -> list[str]:
    """Reads the last lines of a log, without moving the position at which the child writes."""
    size = os.fstat(log.fileno()).st_size
    tail = os.pread(log.fileno(), _LOG_TAIL_BYTES, max(size - _LOG_TAIL_BYTES, 0))
    return tail.decode(errors="replace").splitlines()[-_LOG_TAIL_LINES:]


async def list_shards(address: str) -> shard_pb2.ListShardsResponse | None:
    """Returns what the node at HOST:PORT reports about its shards; None if it does not reply."""
    async with open_channel(address) as channel:
        stub = shard_pb2_grpc.ShardServiceStub(channel)
        try:
            request = shard_pb2.ListShardsRequest()
            reply: shard_pb2.ListShardsResponse = await stub.ListShards(
                request, timeout=_INFO_TIMEOUT
            )
        except grpc.aio.AioRpcError:
            return None
    return reply


async def load_failure(address: str) -> LoadFailure | None:
    """Why the node at HOST:PORT failed to load shards.

    None if no shard failed to load, or the node does not reply.
    """
    reply = await list_shards(address)
    failed = [fault.reason for fault in reply.faults if not fault.is_loading] if reply else []
    if reply is None or not failed:
        return None
    return LoadFailure(
        "; ".join(failed), of_all=len(failed) == len(reply.faults) + len(reply.shards)
    )
