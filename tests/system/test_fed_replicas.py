"""Nodes that are fed through one journal: started from a snapshot, killed, and equal in the end.

Real processes and a real NATS server; only the front is left out.
"""

import asyncio
import json
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
from nats_server import NatsServer, needs_nats
from tenacious import LONG, available, until

from winnow.content_node.live.log_entry import LoggedWrite
from winnow.content_node.live.reading import log_path, read_writes
from winnow.content_node.shard.manifest import ShardManifest, read_shard_manifest
from winnow.deadline import Deadline
from winnow.domain.passage import Passage
from winnow.domain.shard import ShardInfo, shard_name
from winnow.domain.write import Write
from winnow.passages.encoding import pack
from winnow.rpc.channel import open_channel
from winnow.shard_service.remote import RemoteShardWriter
from winnow.stateless.replicas.remote import RemoteNode
from winnow.text.tokenizer import Tokens

pytestmark = needs_nats
SHARD = shard_name(0, 1)


class NodeProcess:
    """A content node that takes writes; tests read its log lines."""

    def __init__(self, shard: Path, journal: str, *options: str) -> None:
        self.shard = shard
        self._log = shard.with_name(f"{shard.name}.log")
        command = [sys.executable, "-m", "winnow", "node", "--shard", str(shard), "--feed"]
        command += ["--journal", journal, "--listen", "127.0.0.1:0", "--threads", "1", *options]
        with self._log.open("w") as log:
            self._process = subprocess.Popen(command, stderr=log)
        until(lambda: '"ready"' in self._said() or self._process.poll() is not None, LONG * 2)
        assert self._process.poll() is None, self._said()
        lines = (json.loads(line) for line in self._said().splitlines() if line.startswith("{"))
        self.address = next(
            f"127.0.0.1:{line['port']}" for line in lines if line["event"] == "listening"
        )

    def end(self, number: signal.Signals = signal.SIGTERM) -> None:
        if self._process.poll() is None:
            self._process.send_signal(number)
            self._process.wait(LONG)

    @property
    def log(self) -> list[LoggedWrite]:
        return list(read_writes(log_path(self.shard), 0))

    def _said(self) -> str:
        return self._log.read_text()


class Caller:
    """Writes to a node, and requests its last sequence number."""

    def __init__(self, node: NodeProcess, manifest: ShardManifest) -> None:
        self.channel = open_channel(node.address)
        self._manifest = manifest
        self._writer = RemoteShardWriter(
            channel=self.channel,
            address=node.address,
            index_id=manifest.index_id,
            shard=0,
            fingerprint=manifest.encoding_fingerprint,
        )
        self._searcher = RemoteNode(self.channel, node.address).searcher(None)

    async def write(self, *texts: str) -> int:
        written = await self._writer.write(
            [put(text, self._manifest.dimension) for text in texts], Deadline.after(LONG)
        )
        return max(each.sequence for each in written)

    async def info(self) -> ShardInfo:
        return await self._searcher.info(Deadline.after(LONG))


def put(text: str, dimension: int) -> Write:
    """Returns a passage under one of a few ids."""
    random = np.random.default_rng(list(text.encode())).standard_normal(dimension)
    vector = (random / np.linalg.norm(random)).astype(np.float32)
    identifier = f"id-{len(text) % 5}"
    passage = Passage(identifier, "Title", text, "")
    tokens = Tokens((1000,), ((0, len(text)),))
    return Write(identifier, None, pack(passage, (1001,), tokens, vector))


async def test_a_replica_started_from_a_snapshot_catches_up_and_survives_a_kill(
    nats_server: NatsServer, indexes: dict[int, Path], tmp_path: Path
) -> None:
    first = Path(shutil.copytree(indexes[1] / SHARD, tmp_path / "first"))
    manifest = read_shard_manifest(first)
    nodes = [await asyncio.to_thread(NodeProcess, first, nats_server.url)]
    callers = [Caller(nodes[0], manifest)]
    try:
        feeding = asyncio.create_task(fed(callers[0], 40))
        url = str(tmp_path / "snapshots")
        await asyncio.to_thread(snapshot, first, url)
        copy = tmp_path / "second"
        pulled = ("--pull", f"{url}/{SHARD}")
        nodes.append(await asyncio.to_thread(NodeProcess, copy, nats_server.url, *pulled))
        callers.append(Caller(nodes[1], manifest))
        last = await feeding
        assert await reached(callers[1], last)
        one, other = [await caller.info() for caller in callers]
        assert one.log_id == other.log_id
        assert one.journaled
        assert other.journaled
        assert one.passages == other.passages

        nodes[0].end(signal.SIGKILL)
        nats_server.stop(signal.SIGKILL)
        nats_server.start()
        last = await fed(callers[1], 10)
        nodes.append(await asyncio.to_thread(NodeProcess, first, nats_server.url))
        callers.append(Caller(nodes[2], manifest))
        assert await reached(callers[2], last)
    finally:
        for caller in callers:
            await caller.channel.close()
        for node in nodes:
            await asyncio.to_thread(node.end)
    assert nodes[1].log == nodes[2].log
    assert len(nodes[1].log) == last


async def fed(caller: Caller, batches: int) -> int:
    """Writes texts, retries unacknowledged writes; returns the number of the last write."""
    last = 0
    for batch in range(batches):
        texts = [f"text {batch} {'x' * (n % 7)}" for n in range(5)]
        last = max(last, await available(lambda texts=texts: caller.write(*texts), LONG))  # type: ignore[misc]
    return last


async def reached(caller: Caller, sequence: int) -> bool:
    """Waits until a node serves a write."""
    found = 0

    async def look() -> None:
        nonlocal found
        while found < sequence:
            found = (await caller.info()).sequence

    async with asyncio.timeout(LONG):
        await look()
    return True


def snapshot(shard: Path, url: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "winnow", "index", "snapshot", str(shard), url],
        capture_output=True,
        text=True,
        timeout=LONG * 2,
        check=False,
    )
    assert done.returncode == 0, done.stderr
