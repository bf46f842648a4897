"""Starts nodes and a front that follow a catalog with one index and its alias."""

import asyncio
import shutil
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

from bench.journal_server import NAME as JOURNAL
from bench.journal_server import JournalServer
from bench.random_kills import wait_loaded
from bench.started_cluster import start_cluster
from winnow.catalog import CatalogFile
from winnow.cli.local.ports import free_ports
from winnow.cli.local.processes import Processes
from winnow.cli.top.polling import ClusterPoller
from winnow.client import AsyncClient
from winnow.content_node.composing.node_indexes import index_directory
from winnow.content_node.shard.manifest import read_index_manifest
from winnow.domain.catalog import Catalog, CatalogIndex
from winnow.errors import WinnowError
from winnow.index_directory import shard_directories

ALIAS, OLD, NEW = "docs", "docs-1", "docs-2"
"""The alias, the index for which it stands at first, and the name of a rebuilt index."""
_HOST = "127.0.0.1"
_READY_SECONDS = 300.0
_POLL_SECONDS = 0.2
_POLL_TIMEOUT = "10"
"""Seconds that a front waits for a poll. A node of a busy machine is not lost. One that was killed
refuses polls at once.
"""


class NamedIndexCluster:
    """Nodes and a front that follow a catalog, in processes, with one index and its alias.

    Each node has all shards.
    """

    def __init__(
        self, children: Processes, index: Path, scratch: Path, journal: JournalServer | None
    ) -> None:
        """Starts the processes: two nodes that follow `journal`, or one node without it."""
        self.journal = journal
        names = ["node-0"] if journal is None else ["node-0", "node-1"]
        self.address, self.feed, *addresses = (
            f"{_HOST}:{port}" for port in free_ports(2 + len(names))
        )
        self.nodes = dict(zip(names, addresses, strict=True))
        """The address of each node, by its name."""
        self._catalog = CatalogFile(str(scratch / "indexes.json"))
        self.snapshots = str(scratch / "snapshots")
        manifest = read_index_manifest(index)
        for name in names:
            for shard in shard_directories(index):
                own = index_directory(scratch / name, manifest.index_id)
                shutil.copytree(shard, own / shard.name)
        entry = CatalogIndex(
            index_id=manifest.index_id,
            shards=manifest.shards,
            holders=dict.fromkeys(range(manifest.shards), tuple(names)),
        )
        named = Catalog().with_index(OLD, entry, self.nodes).with_alias(ALIAS, OLD)
        self._catalog.change(lambda _: named)
        following = ["--indexes", self._catalog.url]
        start_cluster(
            children,
            self.nodes,
            scratch,
            listen=self.address,
            feed=self.feed,
            node_flags=[*following, *(["--journal", journal.url] if journal is not None else [])],
            front_flags=[*following, "--poll-timeout", _POLL_TIMEOUT],
        )

    async def wait_ready(self) -> None:
        """Waits until all processes serve, and a question by the alias is answered."""
        for wait_up in self.wait_up().values():
            await wait_up()
        async with asyncio.timeout(_READY_SECONDS), AsyncClient(self.address, index=ALIAS) as own:
            while True:
                with suppress(WinnowError):
                    await own.ask("ready?")
                    return
                await asyncio.sleep(_POLL_SECONDS)

    def wait_up(self) -> dict[str, Callable[[], Awaitable[None]]]:
        """Returns functions that wait until a node or the journal serves, by the process's name."""
        waits: dict[str, Callable[[], Awaitable[None]]] = {
            name: partial(self._wait_node_up, name) for name in self.nodes
        }
        return waits | ({JOURNAL: self.journal.wait_ready} if self.journal is not None else {})

    async def _wait_node_up(self, name: str) -> None:
        """Waits until a node has loaded all its shards, and the front has polled it since."""
        indexes = (self._catalog.read() or Catalog()).indexes
        await wait_loaded(self.nodes[name], [each.index_id for each in indexes.values()])
        loaded = time.monotonic()
        async with asyncio.timeout(_READY_SECONDS):
            for index in indexes:
                while True:
                    if await asyncio.to_thread(self._is_known, name, index, loaded):
                        break
                    await asyncio.sleep(_POLL_SECONDS)

    def _is_known(self, name: str, index: str, since: float) -> bool:
        """Whether the front sends calls for all shards of an index to a node polled `since`."""
        try:
            with ClusterPoller(self.address, [], 5.0, index=index) as poller:
                asked = time.monotonic()
                shards = poller.poll().cluster.shards
        except WinnowError:
            return False
        return bool(shards) and all(
            any(
                each.address == self.nodes[name]
                and each.state in (each.STATE_SERVING, each.STATE_OUT)
                and asked - each.heard_seconds >= since
                for each in shard.replicas
            )
            for shard in shards
        )

    async def change(self, *words: str, kill_after: float | None = None) -> str | None:
        """Runs `winnow indexes`; returns its output. Kills it after `kill_after` seconds, unless it
        has ended by then; then returns None.

        Raises RuntimeError if it fails.
        """
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "winnow", "indexes", *words, "--indexes", self._catalog.url),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        reading = asyncio.ensure_future(process.communicate())
        try:
            await asyncio.wait([reading], timeout=kill_after)
        finally:  # also if the benchmark ends
            if not reading.done():
                process.kill()
        printed = (await reading)[0].decode()
        if process.returncode == -signal.SIGKILL:
            return None
        if process.returncode:
            raise RuntimeError(printed)
        return printed
