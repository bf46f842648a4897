"""Nodes and a front that follow a catalog of named indexes, in this process."""

import shutil
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

from prometheus_client import CollectorRegistry
from running_processes import Run, running
from tenacious import LONG

import winnow.content_node.__main__ as node
import winnow.stateless.__main__ as front
from winnow.catalog import CatalogFile
from winnow.cli.local.ports import free_ports
from winnow.client import AsyncClient, Reply
from winnow.content_node.composing.node_indexes import index_directory
from winnow.content_node.settings import NodeSettings
from winnow.content_node.shard.manifest import read_index_manifest
from winnow.domain.catalog import Catalog, CatalogIndex
from winnow.index_directory import shard_directories
from winnow.stateless.settings import FrontSettings
from winnow.telemetry.tracing.tracer import NO_TRACER


@dataclass
class NamedCluster:
    """A node with two named indexes, `docs` and `prizes`, and a front."""

    catalog: CatalogFile
    client: AsyncClient
    feed: str
    http: str
    data: Path
    registry: CollectorRegistry
    """Metrics of the front."""
    path: str
    """The file of the catalog."""

    async def ask(self, question: str, index: str = "") -> Reply:
        async with AsyncClient(self.client.address, index=index) as client:
            return await client.ask(question, passages_to_read=3, max_loss=0, timeout=LONG)

    def change(self, change: Callable[[Catalog], Catalog]) -> Catalog:
        return self.catalog.change(lambda before: change(before or Catalog()))


@asynccontextmanager
async def named_cluster(
    root: Path,
    nodes: str = "a",
    *,
    holders: str = "a",
    journal: str = "",
    seconds: float = LONG,
    **indexes: Path,
) -> AsyncIterator[NamedCluster]:
    """Runs nodes, each named by a letter, and a front.

    `indexes` are the indexes by name, whose shards all `holders` have. The nodes follow `journal`
    if it is not empty. The cluster ends after `seconds`.
    """
    listen, http, feed, *ports = (f"127.0.0.1:{port}" for port in free_ports(3 + len(nodes)))
    addresses = dict(zip(nodes, ports, strict=True))
    catalog, registry = CatalogFile(str(root / "indexes.json")), CollectorRegistry()
    for name, directory in indexes.items():
        manifest = read_index_manifest(directory)
        for holder in holders:
            own = index_directory(root / holder, manifest.index_id)
            for shard in shard_directories(directory):
                shutil.copytree(shard, own / shard.name)
        entry = CatalogIndex(
            index_id=manifest.index_id,
            shards=manifest.shards,
            holders=dict.fromkeys(range(manifest.shards), tuple(holders)),
        )
        before = catalog.read() or Catalog()
        added = before.with_index(name, entry, addresses)
        catalog.change(lambda _, added=added: added)  # type: ignore[misc]
    shared = {"indexes": str(root / "indexes.json")}

    def node_named(name: str, address: str) -> Run:
        flags: dict[str, object] = {"listen": address, "name": name, "data": root / name, **shared}
        flags |= {"feed": True, **({"journal": journal} if journal else {})}
        settings = NodeSettings.load(flags, None, {})
        return lambda: node._run(settings, CollectorRegistry(), NO_TRACER)

    flags: dict[str, object] = {
        "listen": listen,
        "http_listen": http,
        "feed_listen": feed,
        "shards": ports,
    }
    flags["poll_timeout"] = 30.0  # a busy machine is no lost node
    front_settings = FrontSettings.load({**flags, **shared}, None, {})
    runs: list[Run] = [
        *(node_named(*each) for each in addresses.items()),
        lambda: front._run(front_settings, registry),
    ]
    async with running(runs, listen, seconds) as client:
        path = str(root / "indexes.json")
        yield NamedCluster(catalog, client, feed, http, root / "a", registry, path)
