"""Content nodes that follow an assignment, in this process, over real gRPC."""

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from prometheus_client import CollectorRegistry
from tenacious import LONG, available

from winnow.assignment import AssignmentFile
from winnow.bundle import Bundle
from winnow.content_node.composing.assigned import open_assigned
from winnow.content_node.composing.assigned_shards import AssignedShards
from winnow.content_node.settings import NodeSettings
from winnow.content_node.shard.manifest import read_shard_manifest
from winnow.content_node.snapshots.contents import open_shard_files
from winnow.content_node.transfer.copies import OpenCopies
from winnow.content_node.transfer.servicer import TRANSFER_SERVICE, ShardTransferServicer
from winnow.deadline import Deadline
from winnow.domain.assignment import Assignment
from winnow.domain.shard import NodeReport, shard_name
from winnow.errors import UnavailableError
from winnow.index_directory import shard_directories
from winnow.rpc.interceptor import CallInterceptor
from winnow.rpc.server import Server
from winnow.security.peers import PLAIN_TEXT
from winnow.shard_service.feed_servicer import FEED_SERVICE, ShardFeedServicer
from winnow.shard_service.servicer import SERVICE, ShardServicer
from winnow.telemetry.metrics import RpcMetrics
from winnow.telemetry.runtimes import RuntimeMetrics
from winnow.v1 import shard_feed_pb2_grpc, shard_pb2_grpc, shard_transfer_pb2_grpc


@dataclass
class AssignedNode:
    """A node that follows an assignment."""

    name: str
    address: str
    shards: AssignedShards
    registry: CollectorRegistry
    health: list[bool]

    async def report(self) -> NodeReport:
        return await self.shards.served.report(Deadline.after(LONG))

    async def serves(self, *shards: int) -> None:
        """Waits until the node serves exactly these shards."""
        await self.reports(lambda report: {info.shard for info in report.infos} == set(shards))

    async def reports(self, condition: Callable[[NodeReport], bool]) -> NodeReport:
        """Waits for a report that fulfils a condition. Only polling can see it, as fronts do."""

        async def fulfilled() -> NodeReport:
            if not condition(report := await self.report()):
                raise UnavailableError("not yet")
            return report

        return await available(fulfilled, LONG)


async def briefly(_seconds: float) -> None:
    """Sleeps for a moment instead of seconds."""
    await asyncio.sleep(0.02)


@asynccontextmanager
async def assigned_node(
    name: str,
    data: Path,
    assignment: Path,
    bundle: Bundle,
    sleep: Callable[[float], Awaitable[None]] = briefly,
    **flags: Any,
) -> AsyncIterator[AssignedNode]:
    """Runs a node with the shards in `data`, which waits by `sleep`."""
    registry, health = CollectorRegistry(), list[bool]()
    server = Server(
        services=[SERVICE, FEED_SERVICE, TRANSFER_SERVICE],
        interceptor=CallInterceptor(RpcMetrics(registry), quiet=True),
    )
    values = {"assignment": str(assignment), "name": name, "data": data, **flags}

    async def set_serving(serving: bool) -> None:
        health.append(serving)

    shards, parts = open_assigned(
        NodeSettings.load(values, None, {}),
        bundle,
        registry,
        runtimes=RuntimeMetrics(registry),
        set_serving=set_serving,
        peers=PLAIN_TEXT,
        sleep=sleep,
    )
    copies = OpenCopies(open_shard_files)
    shard_pb2_grpc.add_ShardServiceServicer_to_server(
        ShardServicer(shards.served, LONG), server.grpc
    )
    shard_feed_pb2_grpc.add_ShardFeedServiceServicer_to_server(
        ShardFeedServicer(shards.served, LONG), server.grpc
    )
    shard_transfer_pb2_grpc.add_ShardTransferServiceServicer_to_server(
        ShardTransferServicer(shards.served, copies), server.grpc
    )
    address = f"127.0.0.1:{await server.start('127.0.0.1:0')}"
    try:
        await shards.load()
        yield AssignedNode(name, address, shards, registry, health)
    finally:
        shards.start_leaving()
        await server.drain(0)
        await copies.close()
        await shards.close()
        parts.close()


class Nodes:
    """Nodes of an index of some shards, which a has at first."""

    def __init__(
        self, root: Path, index: Path, bundle: Bundle, stack: AsyncExitStack, *, shards: int = 3
    ) -> None:
        self.root, self.bundle, self.stack = root, bundle, stack
        self.path = root / "assignment.json"
        for shard in shard_directories(index):
            shutil.copytree(shard, root / "a" / shard.name)
        self.built = shards
        manifest = read_shard_manifest(root / "a" / shard_name(0, shards))
        self.index_id = manifest.index_id
        self.nodes: dict[str, AssignedNode] = {}

    async def start(
        self, name: str, stack: AsyncExitStack | None = None, **flags: Any
    ) -> AssignedNode:
        """Starts a node, which runs until `stack` closes: that of all nodes by default."""
        node = await (stack or self.stack).enter_async_context(
            assigned_node(name, self.root / name, self.path, self.bundle, **flags)
        )
        self.nodes[name] = node
        return node

    def assign(self, holders: Mapping[int, str], shards: Iterable[int] = range(3)) -> None:
        """Assigns `shards` to nodes, each named by a letter; `a` has the others."""
        addresses = {name: node.address for name, node in self.nodes.items()}
        everything = {shard: tuple(holders.get(shard, "a")) for shard in shards}

        def change(before: Assignment | None) -> Assignment:
            version = 1 if before is None else before.version + 1
            nodes = addresses if before is None else {**before.nodes, **addresses}
            return Assignment(
                index_id=self.index_id,
                shards=self.built,
                version=version,
                nodes=nodes,
                holders=everything,
            )

        AssignmentFile(str(self.path)).change(change)
