"""A front and content nodes in each rack, every process on a host of its own."""

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from bench.topology.inside import metric
from bench.topology.names import Names
from bench.topology.network import Host, Network
from winnow.content_node.shard.manifest import read_index_manifest
from winnow.domain.layout import shard_name
from winnow.parent import PARENT_VARIABLE

NODES, FRONTS = "nodes.cluster", "fronts.cluster"
NODE_PORT, FRONT_PORT = 9000, 8080
_LOOK = 0.1
_PATIENCE = 300.0
_GRACE = 20.0


@dataclass(slots=True)
class Process:
    """A node on its host."""

    host: Host
    words: Sequence[str]
    name: str
    """The DNS name that stands for it and its like."""
    ready: str
    """The metric that tells how many shards it serves, or finds."""
    running: subprocess.Popen[bytes] | None = None


@dataclass
class Cluster:
    """All processes; a context manager that leaves none behind."""

    network: Network
    names: Names
    index: Path
    log: IO[bytes]
    nodes: list[Process] = field(default_factory=list)
    fronts: list[Process] = field(default_factory=list)

    def add_node(self, shard: int, rack: str) -> Process:
        """A content node, not yet started."""
        directory = self.index / shard_name(shard, self.shards)
        words = ["node", "--shard", str(directory), "--listen", f"0.0.0.0:{NODE_PORT}"]
        host = self.network.add(f"node{shard}{rack}", rack)
        self.nodes.append(Process(host, words, NODES, "winnow_node_ready"))
        return self.nodes[-1]

    def add_front(self, name: str, rack: str) -> Process:
        """A front, not yet started."""
        shards = f"dns:///{NODES}:{NODE_PORT}"
        words = ["front", "--shards", shards, "--listen", f"0.0.0.0:{FRONT_PORT}"]
        host = self.network.add(name, rack)
        self.fronts.append(Process(host, words, FRONTS, "winnow_front_replicas"))
        return self.fronts[-1]

    @property
    def shards(self) -> int:
        """Of the index."""
        return read_index_manifest(self.index).shards

    async def start(self, process: Process) -> None:
        """Starts a process, and waits until it serves; its name then stands for it, too."""
        process.running = _started(process, self.log)
        await _until_serving(process)
        self.names.put(process.name, process.host.address)

    async def end(self, process: Process) -> None:
        """Ends a process in order: it says that it leaves, and its name is taken away."""
        self.names.take(process.name, process.host.address)
        if process.running is not None:
            process.running.send_signal(signal.SIGTERM)
            await asyncio.to_thread(process.running.wait, _GRACE)

    def lose(self, process: Process) -> None:
        """Cuts the power of its host: nobody is told, and its name still stands for it."""
        self.network.plug(process.host, in_=False)
        if process.running is not None:
            process.running.kill()
            process.running.wait()

    async def replace(self, process: Process) -> None:
        """Starts a process that has ended once more, at another address."""
        self.names.take(process.name, process.host.address)
        self.network.number(process.host)
        self.network.plug(process.host, in_=True)
        await self.start(process)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        for process in [*self.fronts, *self.nodes]:
            if process.running is not None:
                process.running.kill()
                process.running.wait()


def environment() -> dict[str, str]:
    """Of children: they end with this process."""
    return {**os.environ, PARENT_VARIABLE: str(os.getpid())}


def _started(process: Process, log: IO[bytes]) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-m", "winnow", *process.words, "--metrics-listen", "0.0.0.0:9100"]
    return subprocess.Popen(
        process.host.command(words),
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=log,
        stderr=log,
        process_group=0,  # Ctrl-C goes to the parent alone, which then ends its children
    )


async def _until_serving(process: Process) -> None:
    """Raises TimeoutError if that takes too long."""
    async with asyncio.timeout(_PATIENCE):
        while True:
            if await _serves(process):
                return
            await asyncio.sleep(_LOOK)


async def _serves(process: Process) -> bool:
    if process.running is not None and (code := process.running.poll()) is not None:
        raise RuntimeError(f"{process.host.name} has ended with {code}: see its log")
    with contextlib.suppress(OSError):
        return await metric(process.host, process.ready) > 0
    return False
